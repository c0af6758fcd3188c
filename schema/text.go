package schema

import "strconv"

// AppendText appends what DumpLogSegments prints of a record after its metadata with the decoder of topic:
// ` key: {...} payload: {...}`, each with a leading space, or its message about a record that it cannot decode. A null
// key, of which that tool dies, gets a message of the same kind.
func (d *Decoder) AppendText(dst []byte, topic Topic, offset int64, key, value []byte) []byte {
	r := d.Decode(topic, key, value)
	if !topic.keyed() {
		return d.appendFramed(append(dst, " payload: "...), offset, value)
	}
	dst = append(dst, " key: "...)
	switch {
	case r.unknownType:
		dst = append(dst, r.Err.Kafka...)
		dst = append(dst, " at offset "...)
		return append(strconv.AppendInt(dst, offset, 10), ", skipping."...)
	case r.Err != nil:
		return appendSkipped(append(dst, "Error at offset "...), offset, r.Err.Kafka)
	}
	dst = appendHead(dst, `{"type":"`, r.Key.Type)
	dst = append(d.appendData(dst, &d.key), '}')
	if value == nil {
		return append(dst, " payload: <DELETE>"...)
	}
	dst = appendHead(append(dst, " payload: "...), `{"version":"`, r.Value.Version)
	return append(d.appendData(dst, &d.value), '}')
}

func appendHead(dst []byte, head string, n int16) []byte {
	dst = append(dst, head...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, `","data":`...)
}

func appendSkipped(dst []byte, offset int64, message string) []byte {
	dst = strconv.AppendInt(dst, offset, 10)
	dst = append(dst, ", skipping. "...)
	return append(dst, message...)
}

func (d *Decoder) appendFramed(dst []byte, offset int64, value []byte) []byte {
	r := &d.record
	if r.Topic == RemoteLog {
		open := len(dst)
		dst, message := appendRemote(dst, r, value)
		if message != "" {
			return appendSkipped(append(dst[:open], "Error at offset "...), offset, message)
		}
		return dst
	}
	if r.Err != nil {
		return appendSkipped(append(dst, "Error at "...), offset, r.Err.Kafka)
	}
	dst = append(dst, `{"type":"`...)
	dst = append(dst, r.Value.record.constant...)
	dst = append(dst, `","version":`...)
	dst = strconv.AppendInt(dst, int64(r.Value.Version), 10)
	dst = append(dst, `,"data":`...)
	return append(d.appendData(dst, &d.value), '}')
}

// AppendJSON appends a record's "decoded" object of docs/json.md. data has the names and the form of the real tool's
// output.
func (d *Decoder) AppendJSON(dst []byte, topic Topic, key, value []byte) []byte {
	r := d.Decode(topic, key, value)
	dst = append(dst, `{"key":`...)
	if r.Key.Complete {
		dst = appendTyped(dst, &r.Key)
		dst = append(d.appendData(append(dst, `,"data":`...), &d.key), '}')
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"value":`...)
	switch {
	case !r.Value.Complete:
		dst = append(dst, "null"...)
	case topic.keyed():
		dst = append(dst, `{"version":`...)
		dst = strconv.AppendInt(dst, int64(r.Value.Version), 10)
		dst = append(d.appendData(append(dst, `,"data":`...), &d.value), '}')
	default:
		dst = append(appendTyped(dst, &r.Value), `,"version":`...)
		dst = strconv.AppendInt(dst, int64(r.Value.Version), 10)
		dst = append(d.appendData(append(dst, `,"data":`...), &d.value), '}')
	}
	dst = append(dst, `,"error":`...)
	if r.Err == nil {
		return append(dst, "null}"...)
	}
	return append(appendString(dst, []byte(r.Err.Error())), '}')
}

func appendTyped(dst []byte, h *Half) []byte {
	dst = append(dst, `{"type":`...)
	dst = strconv.AppendInt(dst, int64(h.Type), 10)
	dst = append(dst, `,"name":"`...)
	dst = append(dst, h.Name...)
	return append(dst, '"')
}

// appendData appends the body of a message that was read whole.
func (d *Decoder) appendData(dst []byte, t *tape) []byte {
	if d.redacted {
		return append(dst, "null"...)
	}
	t.inner = nil
	if t.speaksConsumer() {
		t.inner = &d.inner
	}
	return t.appendMessage(dst)
}
