package schema

import (
	"encoding/base64"
	"strconv"
)

var transactionStates = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort",
	"Dead", "PrepareEpochFence"}

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
	if t.inner != nil {
		if m := t.inner.consumerMessage(n.member.form); t.inner.readConsumer(m, t.content(n)) {
			return t.inner.inner.appendMessage(dst)
		}
	}
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), t.content(n)), '"')
}

func (d *Decoder) consumerMessage(f form) *message {
	if f == formSubscription {
		return d.catalog.subscription
	}
	return d.catalog.assignment
}

// readConsumer decodes a subscription or an assignment onto the inner tape: behind an int16 version, which is not checked.
func (d *Decoder) readConsumer(m *message, b []byte) bool {
	t := &d.inner
	t.reset(b)
	version := t.c.Int16("consumer protocol version")
	return t.c.OK() && t.read(m, version)
}
