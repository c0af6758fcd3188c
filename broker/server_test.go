package broker

import (
	"slices"
	"strings"
	"testing"

	"kseg/format"
)

// TestServerLogDirs: what the KafkaConfig of 4.4.0 answers as logDirs, and when it throws a ConfigException.
func TestServerLogDirs(t *testing.T) {
	for _, test := range []struct {
		text    string
		dirs    []string
		refused string
	}{
		{"log.dirs=/a, /b", []string{"/a", "/b"}, ""},
		{"log.dirs=/a,/a", []string{"/a"}, ""},
		{"log.dirs=/a\nlog.dir=/c", []string{"/a"}, ""},
		{"log.dir=/c,/d", []string{"/c", "/d"}, ""},
		{"log.dirs=", nil, "log.dirs"},
		{"log.dirs=\nlog.dir=/c", nil, "log.dirs"},
		{"log.dirs=,\nlog.dir=/c", nil, "log.dirs"},
		{"log.dirs=/a,,/b", []string{"/a", "/b"}, "log.dirs"},
		{"log.dirs=/a,", []string{"/a"}, "log.dirs"},
		{"log.dirs=/a\nlog.dir=", []string{"/a"}, "log.dir "},
		{"log.dir=", nil, "log.dir "},
		{"node.id=1", []string{"/tmp/kafka-logs"}, ""},
		{"log.dirs=/a\nmetadata.log.dir=", []string{"/a"}, "metadata.log.dir"},
	} {
		properties, err := format.DecodeProperties([]byte(test.text))
		if err != nil {
			t.Fatal(err)
		}
		s := ParseServer(properties)
		if !slices.Equal(s.LogDirs, test.dirs) || !strings.HasPrefix(s.Refused, test.refused) ||
			(test.refused == "") != (s.Refused == "") {
			t.Errorf("%q: %q, refused for %q", test.text, s.LogDirs, s.Refused)
		}
	}
}
