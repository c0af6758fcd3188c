//go:build oracle

package schema

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// definition is a message definition as Kafka's jars hold it.
type definition struct {
	APIKey           int16 `json:"apiKey"`
	Type             string
	Name             string
	ValidVersions    string
	FlexibleVersions string
	Fields           []definitionField
	CommonStructs    []struct {
		Name   string
		Fields []definitionField
	}
}

type definitionField struct {
	Name, Type                                 string
	Versions, NullableVersions, TaggedVersions string
	Tag                                        *int
	Default                                    any
	Fields                                     []definitionField
}

// The tables are held to the definitions in the jars, field by field; a newer Kafka is a list of differences.
func TestOracleTables(t *testing.T) {
	lib := fixture.OracleLib(t)
	c := tables()
	seen := map[*message]bool{}
	for _, jar := range []struct {
		name  string
		find  func(d *definition) *message
		wants func(file string) bool
	}{
		{"group-coordinator", keyedFinder(c, Offsets), anyFile},
		{"transaction-coordinator", keyedFinder(c, Transactions), anyFile},
		{"share-coordinator", keyedFinder(c, ShareState), anyFile},
		{"metadata", framedFinder(c, Metadata), anyFile},
		{"storage", framedFinder(c, RemoteLog), func(file string) bool { return strings.HasPrefix(file, "Remote") }},
		{"clients", clientFinder(c), func(file string) bool { return clientDefinitions[strings.TrimSuffix(file, ".json")] }},
	} {
		for file, d := range readDefinitions(t, lib, jar.name) {
			if !jar.wants(file) {
				continue
			}
			m := jar.find(d)
			if m == nil {
				t.Errorf("%s %d is not in the tables", d.Name, d.APIKey)
				continue
			}
			seen[m] = true
			checkMessage(t, m, d)
		}
	}
	for _, m := range allMessages(c) {
		if !seen[m] {
			t.Errorf("%s is in the tables and not in the jars", m.name)
		}
	}
}

func anyFile(string) bool { return true }

var clientDefinitions = map[string]bool{"EndTxnMarker": true, "LeaderChangeMessage": true, "SnapshotHeaderRecord": true,
	"SnapshotFooterRecord": true, "KRaftVersionRecord": true, "VotersRecord": true, "ConsumerProtocolSubscription": true,
	"ConsumerProtocolAssignment": true}

func keyedFinder(c *catalog, topic Topic) func(*definition) *message {
	return func(d *definition) *message {
		r := c.record(topic, d.APIKey)
		switch {
		case r == nil:
			return nil
		case d.Type == "coordinator-key" && d.Name == r.name+"Key":
			return r.key
		case d.Type == "coordinator-value" && d.Name == r.name+"Value":
			return r.value
		}
		return nil
	}
}

func framedFinder(c *catalog, topic Topic) func(*definition) *message {
	return func(d *definition) *message {
		if r := c.record(topic, d.APIKey); r != nil && r.name == d.Name && d.Type == "metadata" {
			return r.value
		}
		return nil
	}
}

func clientFinder(c *catalog) func(*definition) *message {
	return func(d *definition) *message {
		for _, m := range []*message{c.subscription, c.assignment} {
			if m.name == d.Name {
				return m
			}
		}
		for _, r := range c.control {
			if r.name == d.Name {
				return r.value
			}
		}
		return nil
	}
}

func allMessages(c *catalog) (all []*message) {
	add := func(records []*record) {
		for _, r := range records {
			if r == nil {
				continue
			}
			if r.key != nil {
				all = append(all, r.key)
			}
			all = append(all, r.value)
		}
	}
	for _, records := range c.topics {
		add(records)
	}
	add(byType(c.control))
	return append(all, c.subscription, c.assignment)
}

var commentLine = regexp.MustCompile(`(?m)^\s*//.*$`)

func readDefinitions(t *testing.T, lib, jar string) map[string]*definition {
	files, err := filepath.Glob(filepath.Join(lib, "kafka-"+jar+"-[0-9]*.jar"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d jars called kafka-%s, want 1", len(files), jar)
	}
	z, err := zip.OpenReader(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	found := map[string]*definition{}
	for _, f := range z.File {
		dir := path.Base(path.Dir(f.Name))
		if path.Ext(f.Name) != ".json" || dir != "message" && dir != "metadata" {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		d := &definition{}
		if err := json.Unmarshal(commentLine.ReplaceAll(text, nil), d); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		found[path.Base(f.Name)] = d
	}
	return found
}

func checkMessage(t *testing.T, m *message, d *definition) {
	lowest, highest := versionRange(t, d.ValidVersions, math.MaxInt16)
	flexible, _ := versionRange(t, d.FlexibleVersions, math.MaxInt16)
	if d.FlexibleVersions == "none" {
		flexible = math.MaxInt16
	}
	if m.lowest != lowest || m.highest != highest || m.flexibleSince != flexible {
		t.Errorf("%s: versions %d-%d flexible %d, Kafka has %s flexible %s", d.Name, m.lowest, m.highest, m.flexibleSince,
			d.ValidVersions, d.FlexibleVersions)
	}
	structs := map[string][]definitionField{}
	for _, s := range d.CommonStructs {
		structs[s.Name] = s.Fields
	}
	c := fieldCheck{t: t, structs: structs, highest: highest}
	c.fields(d.Name, m.fields, d.Fields)
}

type fieldCheck struct {
	t       *testing.T
	structs map[string][]definitionField
	highest int16
}

func (c *fieldCheck) fields(where string, have []*field, want []definitionField) {
	if len(have) != len(want) {
		c.t.Errorf("%s: %d fields, Kafka has %d", where, len(have), len(want))
		return
	}
	for i, w := range want {
		at := where + "." + w.Name
		if got, want := c.describe(have[i]), c.describeWanted(w); got != want {
			c.t.Errorf("%s: %s, Kafka has %s", at, got, want)
		}
		nested := w.Fields
		if len(nested) == 0 {
			nested = c.structs[strings.TrimPrefix(w.Type, "[]")]
		}
		c.fields(at, have[i].fields, nested)
	}
}

// describe writes a table's field in one line, to be compared with that of a definition.
func (c *fieldCheck) describe(f *field) string {
	typ := f.typ.String()
	if f.typ == typeStruct {
		typ = f.structName
	}
	if f.array {
		typ = "[]" + typ
	}
	value := strconv.FormatInt(f.defaultInt, 10)
	if f.defaultNull {
		value = "null"
	}
	return fmt.Sprintf("%s %s nullable %t versions %d-%d tag %d default %s", f.name, typ, f.nullable, f.lowest, f.highest,
		f.tag, value)
}

func (c *fieldCheck) describeWanted(w definitionField) string {
	if w.Versions == "" {
		w.Versions = w.TaggedVersions
	}
	if w.NullableVersions != "" && w.NullableVersions != w.Versions || w.TaggedVersions != "" &&
		w.TaggedVersions != w.Versions {
		return "nullable or tagged in other versions than it exists in, which the tables cannot say"
	}
	lowest, highest := versionRange(c.t, w.Versions, c.highest)
	tag := -1
	if w.Tag != nil {
		tag = *w.Tag
	}
	value := "0"
	switch d := w.Default.(type) {
	case string:
		value = map[string]string{"true": "1", "false": "0", "": "0"}[d]
		if value == "" {
			value = d
		}
	case float64:
		value = strconv.FormatInt(int64(d), 10)
	}
	name := strings.ToLower(w.Name[:1]) + w.Name[1:]
	return fmt.Sprintf("%s %s nullable %t versions %d-%d tag %d default %s", name, w.Type, w.NullableVersions != "",
		lowest, highest, tag, value)
}

func versionRange(t *testing.T, s string, highest int16) (int16, int16) {
	if s == "none" {
		return 0, 0
	}
	low, high, err := parseVersions(s, highest)
	if err != nil {
		t.Fatal(err)
	}
	return low, high
}
