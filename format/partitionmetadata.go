package format

import "strconv"

// PartitionMetadata is a partition.metadata file (PartitionMetadataFile, KIP-516): a line "version: 0" and a line
// "topic_id: " with a UUID. Anything after them is ignored.
type PartitionMetadata struct {
	Version     int32
	TopicID     UUID
	VersionLine Line
	TopicIDLine Line
}

// DecodePartitionMetadata reads a partition.metadata file as a broker does. The names before the colons are not looked
// at, and any version from 0 on is taken. The error is a *StateError; a broker does not start when it meets one.
func DecodePartitionMetadata(raw []byte) (PartitionMetadata, error) {
	var m PartitionMetadata
	if err := checkUTF8("partition.metadata", raw); err != nil {
		return m, err
	}
	r := &lineReader{raw: raw}
	l, col, err := metadataLine(r, "version line")
	if err != nil {
		return m, err
	}
	version, ok := parseJavaInt(col.text, 32)
	if !ok || version < 0 {
		return m, l.fail("partition.metadata version", col.at, IOException, ErrValue, "0 or more", col.text)
	}
	m.Version, m.VersionLine = int32(version), l.Line
	if l, col, err = metadataLine(r, "topic id line"); err != nil {
		return m, err
	}
	m.TopicIDLine = l.Line
	id, parseErr := ParseUUID(string(col.text))
	if parseErr != nil {
		return m, l.fail("topic id", col.at, IllegalArgumentException, ErrValue, "22 characters of base64url", col.text)
	}
	if id == (UUID{}) {
		return m, l.fail("topic id", col.at, IOException, ErrValue, "a UUID other than zero", col.text)
	}
	m.TopicID = id
	return m, nil
}

var partitionMetadataContent = Content{describe: (*describer).partitionMetadata, Row: "properties",
	Rows: func(raw []byte, row func([]Value) error) error {
		m, err := DecodePartitionMetadata(raw)
		if err != nil {
			return err
		}
		return row([]Value{number("version", "version", m.Version), text("topicId", "topic_id", m.TopicID.String())})
	}}

// metadataLine reads the next line and returns what follows its colon and white space.
func metadataLine(r *lineReader, what string) (textLine, column, error) {
	l, ok := r.next()
	if !ok {
		err := l.fail(what, 0, NullPointerException, ErrTruncated, "", nil)
		err.Cause.Got = "end of file after " + strconv.Itoa(l.Number-1) + " lines"
		return l, column{}, err
	}
	cols := splitColons(l.text)
	if len(cols) != 2 {
		return l, column{}, l.fail(what, 0, IOException, ErrValue, `"name: value"`, l.text)
	}
	return l, cols[1], nil
}

// splitColons cuts text as Java's Pattern.split(":\\s+") does: empty columns at the end do not count.
func splitColons(text []byte) []column {
	var cols []column
	start := 0
	for i := 0; i+1 < len(text); i++ {
		if text[i] != ':' || !isJavaSpace(text[i+1]) {
			continue
		}
		cols = append(cols, column{start, text[start:i:i]})
		for i++; i+1 < len(text) && isJavaSpace(text[i+1]); i++ {
		}
		start = i + 1
	}
	cols = append(cols, column{start, text[start:]})
	for len(cols) > 1 && len(cols[len(cols)-1].text) == 0 {
		cols = cols[:len(cols)-1]
	}
	return cols
}
