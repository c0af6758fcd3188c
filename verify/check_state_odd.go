package verify

import (
	"bytes"
	"fmt"
	"strings"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// checkOdd says of a state file that can be read whether Kafka would have written it like that. What Kafka's readers
// pass over may still be the first sign of a bad disk, or of a hand that changed the file.
var checkOdd = Check{
	Name:  "state-file-form",
	Group: "state",
	Codes: []Code{{"state-file-odd", Note, "a state file that can be read, but is not as Kafka writes it"}},
}

// odd reports a file of the partition that is not as Kafka writes it.
func (p *partition) odd(f *logdir.File, raw []byte, want string) {
	if finding, odd := oddFile(f.Rel, raw, want); odd {
		p.found(nil, finding)
	}
}

// oddFile compares a file with what Kafka would have written for the same content.
func oddFile(file string, raw []byte, want string) (Finding, bool) {
	if string(raw) == want {
		return Finding{}, false
	}
	pos := 0
	for pos < len(raw) && pos < len(want) && raw[pos] == want[pos] {
		pos++
	}
	f := oddPlace(file, int64(pos), int64(len(raw)-pos), "a broker reads the file all the same, but would have written "+
		"it otherwise from here on")
	f.Evidence = []Evidence{{"bytes", fmt.Sprintf("%q", excerpt(want[pos:])),
		fmt.Sprintf("%q", excerpt(string(raw[pos:])))}}
	return f, true
}

func oddPlace(file string, pos, length int64, message string) Finding {
	return Finding{Code: "state-file-odd", Place: inFile(file, pos, length), Message: message, logPos: -1}
}

// mostExcerpt is how many bytes of a text are quoted.
const mostExcerpt = 24

func excerpt(text string) string { return text[:min(len(text), mostExcerpt)] }

// checkpointText is what Kafka writes for the lines of a checkpoint.
func checkpointText(lines []string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "0\n%d\n", len(lines))
	for _, line := range lines {
		text.WriteString(line + "\n")
	}
	return text.String()
}

// oddCheckpoint is oddFile for a checkpoint of these lines, but for a file without a byte, which stands for no entries.
func oddCheckpoint(file string, raw []byte, lines []string) (Finding, bool) {
	if len(raw) == 0 {
		return Finding{}, false
	}
	return oddFile(file, raw, checkpointText(lines))
}

// oddCheckpointFile says whether an offset checkpoint is as Kafka writes it: also that no partition is listed twice.
func oddCheckpointFile(file string, c *state.Checkpoint) (Finding, bool) {
	lines := make([]string, len(c.Content.Entries))
	seen := map[state.TopicPartition]bool{}
	for i, e := range c.Content.Entries {
		lines[i] = fmt.Sprintf("%s %d %d", e.Topic, e.Partition, e.Offset)
		key := state.TopicPartition{Topic: e.Topic, Partition: e.Partition}
		if seen[key] {
			return oddPlace(file, e.Pos, e.Len, fmt.Sprintf("%s-%d is listed twice; a broker takes the last line", e.Topic,
				e.Partition)), true
		}
		seen[key] = true
	}
	return oddCheckpoint(file, c.Raw, lines)
}

// propertyKeys are those that Kafka writes into a meta.properties.
var propertyKeys = map[string]bool{"version": true, "cluster.id": true, "node.id": true, "broker.id": true,
	"directory.id": true}

// oddProperties says whether a meta.properties has what Kafka does not write. Its comments and the order of its lines
// mean nothing.
func oddProperties(file string, raw []byte, m *format.MetaProperties) (Finding, bool) {
	if len(m.Properties) == 0 {
		return oddPlace(file, 0, int64(len(raw)), "there is no property in it"), true
	}
	seen := map[string]bool{}
	for _, p := range m.Properties {
		line := raw[p.Pos : p.Pos+p.Len]
		switch {
		case !propertyKeys[p.Key]:
			return oddPlace(file, p.Pos, p.Len, fmt.Sprintf("there is no property %q; a broker does not look at it", p.Key)),
				true
		case seen[p.Key]:
			return oddPlace(file, p.Pos, p.Len, fmt.Sprintf("the property %q is set twice; the last one counts", p.Key)), true
		case p.Key == "node.id" && m.Version == 0, p.Key == "broker.id" && m.Version > 0:
			return oddPlace(file, p.Pos, p.Len, fmt.Sprintf("in version %d of this file there is no %s; a broker does not "+
				"look at it", m.Version, p.Key)), true
		case p.Key == "directory.id" && !plainUUID(p.Value):
			return oddPlace(file, p.Pos, p.Len, "a broker reads the directory id all the same, but would have written it "+
				"otherwise"), true
		case p.Key == "cluster.id" && !plainUUID(p.Value):
			return oddPlace(file, p.Pos, p.Len, "the cluster id is no UUID, as it usually is"), true
		case !bytes.Equal(line, []byte(p.Key+"="+p.Value)):
			return oddPlace(file, p.Pos, p.Len, "a broker reads the line all the same, but would have written it otherwise"),
				true
		}
		seen[p.Key] = true
	}
	return Finding{}, false
}

// topicIDOfKafka reports whether a topic id can be one that Kafka gave out: a random UUID of version 4, or one with a
// meaning of its own.
func topicIDOfKafka(id format.UUID) bool { return id.Reserved() || id[6]>>4 == 4 && id[8]>>6 == 2 }

func plainUUID(text string) bool {
	id, err := format.ParseUUID(text)
	return err == nil && id.String() == text
}
