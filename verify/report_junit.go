package verify

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kseg/render"
)

// JUnitReport writes JUnit's XML, as CI systems read it: a suite for each partition and log directory, with a case for
// each group of checks, and a first suite that says whether everything was read. A case has at most one failure or
// error, since not all readers know what to do with more; its text has all findings.
//
// The form is what the schemas of Ant (by Windy Road) and of Jenkins both allow.
type JUnitReport struct {
	w        io.Writer
	failFrom Severity // findings below it are no failures; 0: none is
	now      time.Time
	findings []junitFinding
}

// junitFinding is what a report keeps of a finding.
type junitFinding struct {
	group, code, place, text, short string
	failure                         bool
}

// NewJUnitReport returns a report for -o junit. Findings of the severity failFrom or worse are failures, the others are
// listed in the suite's system-out; with 0 all are.
func NewJUnitReport(w io.Writer, failFrom Severity, now time.Time) *JUnitReport {
	return &JUnitReport{w: w, failFrom: failFrom, now: now}
}

// Finding keeps a finding until the groups that were run are known.
func (r *JUnitReport) Finding(f *Finding) error {
	place, message := placeText(f), render.Escaped(f.Message)
	text := fmt.Sprintf("%s %s %s\n%s%s\n", f.Severity, f.Code, place, textIndent, message)
	if f.Count > 1 {
		text += fmt.Sprintf("%s%d such places in this file\n", textIndent, f.Count)
	}
	for _, related := range f.Related {
		text += textIndent + "see also " + render.Escaped(relatedText(&related)) + "\n"
	}
	if f.Next != "" {
		text += textIndent + "next: " + render.Escaped(f.Next) + "\n"
	}
	r.findings = append(r.findings, junitFinding{group: Group(f.Code), code: f.Code, place: f.Shown, text: text,
		short: place + ": " + message, failure: r.failFrom > 0 && f.Severity >= r.failFrom})
	return nil
}

// junitCase is one testcase.
type junitCase struct {
	name     string
	element  string // "failure", "error" or "" for one that passed
	kind     string
	findings int
	message  string
	text     strings.Builder
}

// fail adds a failure or an error.
func (c *junitCase) fail(element, kind, message, text string) {
	if c.findings == 0 {
		c.element, c.kind, c.message = element, kind, message
	}
	c.findings++
	c.text.WriteString(text)
}

// junitSuite is one testsuite.
type junitSuite struct {
	name, class string
	took        Times
	cases       []*junitCase
	out         strings.Builder // findings that are no failures
}

// group is the suite's case of that name, made if it is not there.
func (s *junitSuite) group(name string) *junitCase {
	i := slices.IndexFunc(s.cases, func(c *junitCase) bool { return c.name == name })
	if i < 0 {
		i = len(s.cases)
		s.cases = append(s.cases, &junitCase{name: name})
	}
	return s.cases[i]
}

// Close writes everything.
func (r *JUnitReport) Close(s *Summary) error {
	suites := r.suites(s)
	buf := []byte(xml.Header + "<testsuites>\n")
	for i, suite := range suites {
		buf = r.append(buf, i, suite)
		if _, err := r.w.Write(buf); err != nil {
			return err
		}
		buf = buf[:0]
	}
	_, err := io.WriteString(r.w, "</testsuites>\n")
	return err
}

// suites sorts the findings into the groups that were run.
func (r *JUnitReport) suites(s *Summary) []*junitSuite {
	whole := &junitSuite{name: "kseg verify", class: "kseg"}
	verdict, rest := VerdictText(s)
	whole.out.WriteString(verdict + rest + "\n")
	reading := whole.group("everything was read")
	for _, text := range s.NotRead {
		text = render.Escaped(text)
		reading.fail("error", "incomplete", text, text+"\n")
	}
	if len(s.NotRead) == 0 && s.Verdict() == Incomplete {
		reading.fail("error", "incomplete", "there was nothing to check", "there was nothing to check\n")
	}
	suites := []*junitSuite{whole}
	byPlace, classes := map[string]*junitSuite{}, map[string]bool{}
	for _, g := range s.Groups {
		suite := byPlace[g.Place]
		if suite == nil {
			name := g.Partition
			if name == "" {
				name = filepath.Base(g.Place)
			}
			if classes[name] {
				name = g.Place // a partition in two log directories
			}
			classes[name] = true
			suite = &junitSuite{name: render.Escaped(g.Place), took: g.Took, class: "kseg." + render.Escaped(name)}
			byPlace[g.Place] = suite
			suites = append(suites, suite)
		}
		for _, name := range g.Groups {
			suite.group(name)
		}
	}
	for i := range r.findings {
		f := &r.findings[i]
		suite := suiteOf(byPlace, whole, f.place)
		if f.failure {
			suite.group(f.group).fail("failure", f.code, f.short, f.text)
		} else {
			suite.out.WriteString(f.text)
		}
	}
	return suites
}

// suiteOf is the suite of the innermost place that holds the file.
func suiteOf(byPlace map[string]*junitSuite, otherwise *junitSuite, file string) *junitSuite {
	for place := file; place != ""; place = filepath.Dir(place) {
		if suite := byPlace[place]; suite != nil {
			return suite
		}
		if place == filepath.Dir(place) {
			break
		}
	}
	return otherwise
}

// append appends a suite. Ant's schema wants all of these attributes and elements, and the name of a host.
func (r *JUnitReport) append(buf []byte, id int, s *junitSuite) []byte {
	failures, errs, all := 0, 0, time.Duration(0)
	for _, c := range s.cases {
		all += s.took[c.name]
		switch c.element {
		case "failure":
			failures++
		case "error":
			errs++
		}
	}
	buf = fmt.Appendf(buf, "  <testsuite name=%s tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"0\" time=%s "+
		"timestamp=\"%s\" hostname=\"localhost\" id=\"%d\" package=\"kseg\">\n    <properties></properties>\n",
		attribute(s.name), len(s.cases), failures, errs, seconds(all), r.now.UTC().Format("2006-01-02T15:04:05"), id)
	for _, c := range s.cases {
		buf = fmt.Appendf(buf, "    <testcase name=%s classname=%s time=%s", attribute(c.name), attribute(s.class),
			seconds(s.took[c.name]))
		if c.element == "" {
			buf = append(buf, "></testcase>\n"...)
			continue
		}
		message := c.message
		if c.findings > 1 {
			message = fmt.Sprintf("%d in all, the first: %s", c.findings, message)
		}
		buf = fmt.Appendf(buf, ">\n      <%s type=%s message=%s>%s</%s>\n    </testcase>\n", c.element, attribute(c.kind),
			attribute(message), escapeXML(c.text.String()), c.element)
	}
	return fmt.Appendf(buf, "    <system-out>%s</system-out>\n    <system-err></system-err>\n  </testsuite>\n",
		escapeXML(s.out.String()))
}

// seconds is a time as JUnit has it.
func seconds(took time.Duration) string {
	return `"` + strconv.FormatFloat(took.Seconds(), 'f', -1, 64) + `"`
}

func attribute(text string) string { return `"` + escapeXML(text) + `"` }

// escapeXML writes text for XML 1.0. What came from files has no control characters any more (render.Escaped), and line
// ends are kept as they are, for reading.
func escapeXML(text string) string {
	var b bytes.Buffer
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		_ = xml.EscapeText(&b, []byte(line)) // a buffer takes everything
	}
	return b.String()
}
