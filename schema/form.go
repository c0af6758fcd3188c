package schema

import (
	"encoding/base64"
	"strconv"
)

var transactionStates = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit",
	"CompleteAbort", "Dead", "PrepareEpochFence"}

// TransactionState names a transactionStatus of __transaction_state; "" if Kafka does not know it.
func TransactionState(status int8) string {
	if status < 0 || int(status) >= len(transactionStates) {
		return ""
	}
	return transactionStates[status]
}

// appendForm appends a value that the real tool does not print by its type.
func (t *tape) appendForm(dst []byte, n *node) []byte {
	if n.member.form == formTransactionState {
		name := TransactionState(int8(n.num))
		if name == "" {
			name = strconv.Itoa(int(n.num))
		}
		return append(append(append(dst, '"'), name...), '"')
	}
	if t.inner != nil && t.inner.readConsumer(n.member.form, t.content(n)) {
		return t.inner.appendMessage(dst)
	}
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), t.content(n)), '"')
}

// speaksConsumer reports whether the message is a group whose members use the consumer protocol.
func (t *tape) speaksConsumer() bool {
	return t.msg == tables().groupMetadata && len(t.nodes) > 1 && string(t.content(&t.nodes[1])) == "consumer"
}

// readConsumer decodes a member's subscription or assignment: after an int16 version, which is not checked.
func (t *tape) readConsumer(f form, b []byte) bool {
	m := tables().assignment
	if f == formSubscription {
		m = tables().subscription
	}
	t.reset(b)
	version := t.c.Int16("consumer protocol version")
	return t.c.OK() && t.read(m, version)
}
