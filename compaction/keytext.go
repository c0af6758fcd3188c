package compaction

import (
	"strings"

	"kseg/broker"
	"kseg/render"
	"kseg/schema"
)

// keyDecoder decodes keys of internal topics, as far as the payload mode allows.
func keyDecoder(payload render.Payload) *schema.Decoder {
	d := schema.NewDecoder()
	if payload.LengthsOnly() {
		d.Redact()
	}
	return d
}

// keyText shows a key: that of an internal topic decoded, as its type and fields; of a very long one its length.
func keyText(d *schema.Decoder, topic schema.Topic, k *broker.KeyCount, payload render.Payload) string {
	key := k.Key
	if key == nil {
		return render.Plural(k.Size, "byte", "bytes")
	}
	if topic != schema.None && !payload.LengthsOnly() {
		if half := d.Decode(topic, key, nil).Key; half.Complete {
			words := []string{half.Name}
			for leaf := range half.Leaves() {
				if leaf.Value != "" && !strings.Contains(leaf.Path, ".") && half.Get(leaf.Path).Present() {
					words = append(words, leaf.Path+" "+leaf.Value)
				}
			}
			return render.Escaped(strings.Join(words, " "))
		}
	}
	if payload.LengthsOnly() {
		return string(payload.AppendText(nil, key))
	}
	beginning, rest := render.Brief(key)
	return string(payload.AppendText(nil, beginning)) + rest
}
