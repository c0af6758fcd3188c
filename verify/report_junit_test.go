package verify

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"kseg/internal/fixture"
	"kseg/logdir"
)

// The elements of JUnit's XML with what the two schemas of the report demand of each: attributes, and children in this
// order. "?" is one or none of several, "*" any number.
var junitElements = map[string]struct {
	attributes string
	children   []string
}{
	"testsuites": {"", []string{"testsuite*"}},
	"testsuite": {"name tests failures errors skipped time timestamp hostname id package",
		[]string{"properties", "testcase*", "system-out", "system-err"}},
	"properties": {"", nil},
	"testcase":   {"name classname time", []string{"error|failure?"}},
	"error":      {"type message", nil},
	"failure":    {"type message", nil},
	"system-out": {"", nil},
	"system-err": {"", nil},
}

// element is any element of a document.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
	Text     string     `xml:",chardata"`
}

func (e *element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// check holds an element against junitElements.
func (e *element) check(t *testing.T) {
	t.Helper()
	rule, ok := junitElements[e.XMLName.Local]
	if !ok {
		t.Errorf("there is no element %s", e.XMLName.Local)
		return
	}
	var names []string
	for _, a := range e.Attrs {
		names = append(names, a.Name.Local)
	}
	if got := strings.Join(names, " "); got != rule.attributes {
		t.Errorf("%s has the attributes %s, want %s", e.XMLName.Local, got, rule.attributes)
	}
	at := 0
	for _, want := range rule.children {
		name, many := strings.CutSuffix(want, "*")
		name, optional := strings.CutSuffix(name, "?")
		n := 0
		for at < len(e.Children) && strings.Contains("|"+name+"|", "|"+e.Children[at].XMLName.Local+"|") && (many || n == 0) {
			n++
			at++
		}
		if n == 0 && !many && !optional {
			t.Errorf("%s has no %s", e.XMLName.Local, want)
		}
	}
	if at < len(e.Children) {
		t.Errorf("%s: a %s is out of place", e.XMLName.Local, e.Children[at].XMLName.Local)
	}
	for i := range e.Children {
		e.Children[i].check(t)
	}
}

// junit runs a verification and reads its report strictly.
func junit(t *testing.T, failFrom Severity, opts Options, paths ...string) (root element, text string,
	found []Finding) {
	t.Helper()
	set, err := logdir.Open(paths, logdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	report := NewJUnitReport(&out, failFrom, time.UnixMilli(1796000000000))
	opts.MaxBatchBytes, opts.Level, opts.Now = 64<<20, Records, time.UnixMilli(1796000000000)
	opts.Emit = func(f *Finding) error {
		found = append(found, *f)
		return report.Finding(f)
	}
	summary, err := Run(context.Background(), set, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Close(&summary); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(out.Bytes(), &root); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return root, out.String(), found
}

// Each finding is in one case, which is a failure from the given severity on; the numbers of a suite are those of its
// cases.
func TestJUnit(t *testing.T) {
	for i, r := range fixture.Recipes(t) {
		if !fixture.Sampled(i, 4) {
			continue
		}
		for _, failFrom := range []Severity{Damage, Warning, 0} {
			root, _, found := junit(t, failFrom, Options{}, fixture.Damaged(t, r.Name))
			root.check(t)
			failing := map[string]bool{}
			for i := range found {
				if f := &found[i]; failFrom > 0 && f.Severity >= failFrom {
					failing[Group(f.Code)] = true
				}
			}
			cases, failures := 0, 0
			var out strings.Builder
			for i := range root.Children {
				c, f := checkSuite(t, &root.Children[i], i)
				cases, failures = cases+c, failures+f
				for _, e := range root.Children[i].Children {
					out.WriteString(e.Text)
					for _, f := range e.Children {
						out.WriteString(f.Text)
					}
				}
			}
			if failures != len(failing) || cases < 5 {
				t.Errorf("%s from %s on: %d of %d cases fail, want %v", r.Name, failFrom, failures, cases, failing)
			}
			for i := range found {
				if n := strings.Count(out.String(), found[i].Code+" "+placeText(&found[i])+"\n"); n != 1 {
					t.Errorf("%s: %s is there %d times", r.Name, line(&found[i]), n)
				}
			}
		}
	}
}

// TestJUnitTimes holds that each group of checks has a time of its own, damaged or not, and a suite their sum.
func TestJUnitTimes(t *testing.T) {
	var ticks atomic.Int64
	clock := func() time.Time { return time.UnixMicro(ticks.Add(1)) }
	for _, dir := range []string{fixture.Dir(t, "4.4.0/logdirs/killed/data1"), fixture.Damaged(t, "payload-flip")} {
		root, text, _ := junit(t, Damage, Options{Clock: clock}, dir)
		root.check(t)
		read := false
		for _, suite := range root.Children[1:] {
			sum := 0.0
			for _, c := range suite.Children {
				if c.XMLName.Local != "testcase" {
					continue
				}
				took, err := strconv.ParseFloat(c.attr("time"), 64)
				if err != nil || took <= 0 && c.attr("name") != "records" && c.attr("name") != "producers" {
					t.Errorf("%s: %s took %s", suite.attr("name"), c.attr("name"), c.attr("time"))
				}
				read = read || c.attr("name") == "records" && took > 0
				sum += took
			}
			if all, err := strconv.ParseFloat(suite.attr("time"), 64); err != nil || math.Abs(all-sum) > 1e-9 {
				t.Errorf("%s took %s, its cases %f", suite.attr("name"), suite.attr("time"), sum)
			}
		}
		if !read {
			t.Errorf("no records took any time: %s", text)
		}
	}
}

// checkSuite holds the numbers of a suite against its cases, and returns them.
func checkSuite(t *testing.T, suite *element, id int) (cases, failures int) {
	t.Helper()
	errs := 0
	seen := map[string]bool{}
	for _, c := range suite.Children {
		if c.XMLName.Local != "testcase" {
			continue
		}
		cases++
		if seen[c.attr("name")] {
			t.Errorf("%s has two cases %s", suite.attr("name"), c.attr("name"))
		}
		seen[c.attr("name")] = true
		for _, e := range c.Children {
			if e.XMLName.Local == "failure" {
				failures++
			} else {
				errs++
			}
		}
	}
	got := fmt.Sprint(suite.attr("tests"), suite.attr("failures"), suite.attr("errors"), suite.attr("id"))
	if want := fmt.Sprint(strconv.Itoa(cases), strconv.Itoa(failures), strconv.Itoa(errs),
		strconv.Itoa(id)); got != want || cases == 0 {
		t.Errorf("%s: numbers are %s, want %s", suite.attr("name"), got, want)
	}
	return cases, failures
}

// Names of any bytes give well-formed XML without control characters, and what cannot be read is an error.
func TestJUnitHostileNames(t *testing.T) {
	root := t.TempDir()
	names := []string{"a<b>&\"'-0", "]]>-1", "\x01\x1b[31m\xff\xef\xbf\xbe\u202e-2", "line\nbreak\r\t-3"}
	for _, name := range names {
		if err := fixture.Copy(filepath.Join(root, name), "4.4.0/hello/hello-0"); err != nil {
			t.Fatal(err)
		}
		if err := fixture.ApplyTo(filepath.Join(root, name), "flip 00000000000000000000.log 70:1"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("nowhere", filepath.Join(root, name, "gone\x07<&.log")); err != nil {
			t.Fatal(err)
		}
	}
	doc, text, found := junit(t, Damage, Options{}, root, filepath.Join(root, "\x02<missing>"))
	doc.check(t)
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\n' || r == '\u202e' || r == 0xfffe
	}) {
		t.Errorf("characters that XML cannot have:\n%q", text)
	}
	if damages := strings.Count(text, "<failure "); len(found) < len(names) || damages < len(names) {
		t.Errorf("%d findings, %d failures", len(found), damages)
	}
	if first := doc.Children[0]; first.attr("errors") != "1" {
		t.Errorf("%s errors", first.attr("errors"))
	}
}

// One partition in two log directories gives two classes.
func TestJUnitClassesDiffer(t *testing.T) {
	a, b := fixture.Dir(t, "4.4.0/hello/hello-0"), fixture.Dir(t, "4.4.0/hello/hello-0")
	doc, _, _ := junit(t, Damage, Options{}, a, b)
	classes := map[string]bool{}
	for _, suite := range doc.Children {
		classes[suite.Children[1].attr("classname")] = true
	}
	if len(classes) != 3 {
		t.Errorf("the classes are %v", classes)
	}
}

func TestJUnitNothingChecked(t *testing.T) {
	var out bytes.Buffer
	report := NewJUnitReport(&out, Damage, time.Now())
	if err := report.Close(&Summary{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `<error type="incomplete" message="there was nothing to check">`) {
		t.Error(out.String())
	}
	if err := NewJUnitReport(failingWriter{}, Damage, time.Now()).Close(&Summary{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a write error: %v", err)
	}
}

// failingWriter takes nothing.
type failingWriter struct{}

// Write fails.
func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
