package schema

import (
	"embed"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The tables are text, one line a message, version range or field, nested by indentation of two spaces:
//
//	2 GroupMetadata                      record type, and the name of the message
//	  key 0                              the versions of the key: "0", "0-4"
//	    group string
//	  value 0-4 flexible 4+              compact encodings and tagged fields from version 4; "flexible" alone: in all
//	    members []MemberMetadata         an array of structs; the fields of the struct follow at its first use
//	      groupInstanceId string? 3+     "?" may be null; from version 3, "1" in version 1 only
//	      rackId string? tag 0 = null    a tagged field; the value a reader assumes if it is not there
//	      assignment bytes as assignment printed in a form of its own
//
// Without "=" the assumed value is 0, false, "", no bytes, no elements, or a struct of such.
//
//go:embed tables/*.txt
var tableFiles embed.FS

// record is the pair of messages that a record of one type is made of. key has no fields where the log has no keys.
type record struct {
	typ        int16
	name       string
	constant   string // Kafka's enum constant: METADATA records are printed by it
	key, value *message
}

// message is one table: a struct with versions.
type message struct {
	name            string
	lowest, highest int16
	flexibleSince   int16 // math.MaxInt16: in no version
	fields          []*field
	layouts         []*layout // by version - lowest
}

// layout is what a struct consists of in one version.
type layout struct {
	flexible    bool
	fields      []member
	foreignTags []int // tags that belong to other versions
}

// member is a field in one version; sub is the layout of its struct or of its array's structs. One that is implied has
// no bytes, but is printed.
type member struct {
	*field
	sub     *layout
	implied bool
}

// typ is how a value is encoded.
type typ uint8

const (
	typeBool typ = iota
	typeInt8
	typeInt16
	typeUint16
	typeInt32
	typeInt64
	typeFloat64
	typeUUID
	typeString
	typeBytes
	typeStruct
)

var typeNames = map[string]typ{
	"bool": typeBool, "int8": typeInt8, "int16": typeInt16, "uint16": typeUint16, "int32": typeInt32, "int64": typeInt64,
	"float64": typeFloat64, "uuid": typeUUID, "string": typeString, "bytes": typeBytes,
}

// form says how a field is printed where that is not by its type.
type form uint8

const (
	formPlain form = iota
	formTransactionState
	formSubscription
	formAssignment
)

var formNames = map[string]form{
	"transactionState": formTransactionState, "subscription": formSubscription, "assignment": formAssignment,
}

// width is the number of bytes of a value, 0 if it varies.
func (t typ) width() int {
	return [...]int{typeBool: 1, typeInt8: 1, typeInt16: 2, typeUint16: 2, typeInt32: 4, typeInt64: 8, typeFloat64: 8,
		typeUUID: 16, typeStruct: 0}[t]
}

// field is one line of a table. With array set, typ is that of the elements.
type field struct {
	name            string
	typ             typ
	array           bool
	structName      string
	nullable        bool
	lowest, highest int16
	tag             int // -1: not tagged
	defaultInt      int64
	defaultNull     bool
	fields          []*field
	jsonKey         string // the name with quotes, a comma before and a colon after
	form            form
}

// parseTable reads one of the table files.
func parseTable(file string) (map[int16]*record, error) {
	text, err := tableFiles.ReadFile("tables/" + file)
	if err != nil {
		return nil, err
	}
	p := &tableParser{}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("tables/%s:%d: %w", file, i+1, err)
		}
	}
	records := map[int16]*record{}
	for _, r := range p.records {
		if err := r.compile(); err != nil {
			return nil, fmt.Errorf("tables/%s: %s: %w", file, r.name, err)
		}
		records[r.typ] = r
	}
	return records, nil
}

type tableParser struct {
	records []*record
	message *message
	open    []*[]*field // the field lists that the next line may belong to, by depth
}

func (p *tableParser) line(line string) error {
	words := strings.Fields(line)
	depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
	if len(words) < 2 {
		return fmt.Errorf("%q is too short", line)
	}
	switch depth {
	case 0:
		n, err := strconv.ParseInt(words[0], 10, 16)
		p.records = append(p.records, &record{typ: int16(n), name: words[1], constant: constantName(words[1])})
		return err
	case 1:
		return p.startMessage(words)
	default:
		return p.addField(depth-2, words)
	}
}

func (p *tableParser) startMessage(words []string) error {
	r := p.records[len(p.records)-1]
	m := &message{name: r.name, flexibleSince: math.MaxInt16}
	var err error
	if m.lowest, m.highest, err = parseVersions(words[1], 0); err != nil {
		return err
	}
	if len(words) > 2 {
		m.flexibleSince = m.lowest
	}
	if len(words) > 3 {
		if m.flexibleSince, _, err = parseVersions(words[3], math.MaxInt16); err != nil {
			return err
		}
	}
	if words[0] == "key" {
		r.key = m
	} else {
		r.value = m
	}
	p.message, p.open = m, []*[]*field{&m.fields}
	return nil
}

func (p *tableParser) addField(depth int, words []string) error {
	f, err := p.parseField(words)
	if err != nil {
		return err
	}
	if depth >= len(p.open) {
		return fmt.Errorf("%s is indented too far", f.name)
	}
	*p.open[depth] = append(*p.open[depth], f)
	p.open = append(p.open[:depth+1], &f.fields)
	return nil
}

// resolveStructs gives each use of a struct after the first the fields that stand at the first.
func resolveStructs(fields []*field, known map[string][]*field) error {
	for _, f := range fields {
		switch {
		case f.typ != typeStruct:
			continue
		case len(f.fields) > 0:
			known[f.structName] = f.fields
		case known[f.structName] == nil:
			return fmt.Errorf("%s: %s has no fields here or before", f.name, f.structName)
		default:
			f.fields = known[f.structName]
			continue
		}
		if err := resolveStructs(f.fields, known); err != nil {
			return err
		}
	}
	return nil
}

func (p *tableParser) parseField(words []string) (*field, error) {
	f := &field{name: words[0], tag: -1, lowest: p.message.lowest, highest: p.message.highest}
	f.jsonKey = "," + strconv.Quote(f.name) + ":"
	name, nullable := strings.CutSuffix(words[1], "?")
	name, array := strings.CutPrefix(name, "[]")
	f.array, f.nullable = array, nullable
	t, scalar := typeNames[name]
	if !scalar {
		t, f.structName = typeStruct, name
	}
	f.typ = t
	var err error
	for i := 2; i < len(words) && err == nil; i++ {
		switch words[i] {
		case "tag":
			i++
			f.tag, err = strconv.Atoi(words[i])
		case "as":
			i++
			f.form = formNames[words[i]]
		case "=":
			i++
			err = f.setDefault(words[i])
		default:
			f.lowest, f.highest, err = parseVersions(words[i], f.highest)
		}
	}
	return f, err
}

func (f *field) setDefault(word string) (err error) {
	switch word {
	case "null":
		f.defaultNull = true
	case "true":
		f.defaultInt = 1
	default:
		f.defaultInt, err = strconv.ParseInt(word, 10, 64)
	}
	return err
}

// parseVersions reads "3", "0-4" or "2+"; the last keeps highest.
func parseVersions(s string, highest int16) (int16, int16, error) {
	if from, ok := strings.CutSuffix(s, "+"); ok {
		n, err := strconv.ParseInt(from, 10, 16)
		return int16(n), highest, err
	}
	from, to, ok := strings.Cut(s, "-")
	if !ok {
		to = from
	}
	low, err := strconv.ParseInt(from, 10, 16)
	if err != nil {
		return 0, 0, err
	}
	high, err := strconv.ParseInt(to, 10, 16)
	return int16(low), int16(high), err
}

// constantName turns NoOpRecord into NO_OP_RECORD, as Kafka's generator does.
func constantName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c >= 'A' && c <= 'Z' && i > 0 {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToUpper(name[i : i+1]))
	}
	return b.String()
}

func (r *record) compile() error {
	for _, m := range []*message{r.key, r.value} {
		if m == nil {
			continue
		}
		if err := resolveStructs(m.fields, map[string][]*field{}); err != nil {
			return err
		}
		for v := m.lowest; v <= m.highest; v++ {
			m.layouts = append(m.layouts, compileStruct(m.fields, v, v, v >= m.flexibleSince))
		}
	}
	return nil
}

// compileStruct makes the layout of a struct in a version of which the bytes are those of the version written.
func compileStruct(fields []*field, version, written int16, flexible bool) *layout {
	l := &layout{flexible: flexible}
	for _, f := range fields {
		if version < f.lowest || version > f.highest {
			if f.tag >= 0 {
				l.foreignTags = append(l.foreignTags, f.tag)
			}
			continue
		}
		m := member{field: f, implied: written < f.lowest}
		if f.typ == typeStruct {
			m.sub = compileStruct(f.fields, version, written, flexible)
		}
		l.fields = append(l.fields, m)
	}
	return l
}

// layout returns what the message consists of in a version, which is taken for the nearest one that the table has.
func (m *message) layout(version int16) *layout {
	return m.layouts[min(max(version, m.lowest), m.highest)-m.lowest]
}
