package render

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestObj(t *testing.T) {
	o := NewObj(nil, "record")
	o.Str("file", `a"b\c`)
	o.Int("offset", math.MinInt64)
	o.IntOrNull("sequence", -1, false)
	o.Float("mean", 1.25, 2)
	o.Float("rate", math.NaN(), 2)
	o.Bool("valid", true)
	o.Null("decoded")
	o.StrOrNull("next", "")
	o.Time("timestamp", 1700000000123)
	o.Time("max", NoTimestamp)
	o.Time("far", math.MaxInt64)
	o.Bytes("key", nil, PayloadDefault)
	o.OpenArray("headers")
	o.Open("")
	o.Str("key", "[")
	o.Bytes("value", []byte{0xff}, PayloadDefault)
	o.Close()
	o.Open("")
	o.Close()
	o.CloseArray()
	o.OpenArray("hops")
	o.Int("", 1)
	o.Int("", 2)
	o.CloseArray()
	o.Raw("raw", []byte(`{"x":[]}`))
	o.Value("value", struct {
		B int
		A string `json:"a"`
	}{1, "x"})
	o.Value("unprintable", func() {})
	got := string(o.Line())
	want := `{"kind":"record","schema":1,"file":"a\"b\\c","offset":-9223372036854775808,"sequence":null,"mean":1.25,` +
		`"rate":null,` +
		`"valid":true,"decoded":null,"next":null,"timestamp":1700000000123,"timestamp_utc":"2023-11-14T22:13:20.123Z",` +
		`"max":null,"max_utc":null,"far":9223372036854775807,"far_utc":null,"key":null,` +
		`"headers":[{"key":"[","value":{"base64":"/w=="}},{}],"hops":[1,2],"raw":{"x":[]},"value":{"B":1,"a":"x"},` +
		`"unprintable":null}` + "\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !json.Valid([]byte(got)) {
		t.Error("not valid JSON")
	}
}

func TestObjDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 1024)
	key := []byte("key \x00 naïve \u202e")
	allocs := testing.AllocsPerRun(100, func() {
		o := NewObj(buf[:0], "record")
		o.Str("file", "00000000000000000000.log")
		o.Int("offset", 4740)
		o.Time("timestamp", 1700000000123)
		o.Bytes("key", key, PayloadDefault)
		o.Bytes("value", key, PayloadRedacted)
		o.Bytes("more", key[4:5], PayloadDefault)
		buf = o.Line()
	})
	if allocs != 0 {
		t.Errorf("%v allocations a line", allocs)
	}
}

// TestAppendString holds that every string comes back from encoding/json as it was, its broken bytes as U+FFFD, and
// that no byte of the text can act on a terminal.
func TestAppendString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()),
			func(b []byte) string { return string(b) })).Draw(t, "in")
		text := AppendString([]byte("x"), in)[1:]
		if again := AppendString(nil, []byte(in)); string(again) != string(text) {
			t.Fatalf("a string and its bytes differ: %s, %s", text, again)
		}
		var out string
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if want := strings.ToValidUTF8(string([]rune(in)), "\uFFFD"); out != want {
			t.Fatalf("%q came back as %q", in, out)
		}
		for _, r := range string(text) {
			if r < 0x20 || r >= 0x7f && r < 0xa0 || hidden(r) {
				t.Fatalf("%U is raw in %q", r, text)
			}
		}
	})
}

func TestAppendStringTagCharacters(t *testing.T) {
	if got := string(AppendString(nil, "a\U000E0041b\u2028\x7f")); got != `"a\udb40\udc41b\u2028\u007f"` {
		t.Error(got)
	}
}

func TestPayload(t *testing.T) {
	number := []byte{0, 0, 0, 0, 0, 0, 0, 42}
	tests := []struct {
		mode Payload
		in   []byte
		text string
		json string
	}{
		{PayloadRaw, []byte("a\x1b[31m\n\xff"), "a\x1b[31m\n\xff", `{"base64":"YRtbMzFtCv8="}`},
		{PayloadAuto, []byte("a\x1b[31m\n"), `a\x1b[31m\n`, `{"utf8":"a\u001b[31m\n"}`},
		{PayloadAuto, number, "000000000000002a", `{"utf8":"\u0000\u0000\u0000\u0000\u0000\u0000\u0000*"}`},
		{PayloadAuto, []byte("\xff"), "ff", `{"base64":"/w=="}`},
		{PayloadAuto, []byte{}, "", `{"utf8":""}`},
		{PayloadUTF8, number, `\x00\x00\x00\x00\x00\x00\x00*`, `{"utf8":"\u0000\u0000\u0000\u0000\u0000\u0000\u0000*"}`},
		{PayloadUTF8, []byte("\xffä\u202e"), `\xffä\u202e`, `{"base64":"/8Ok4oCu"}`},
		{PayloadHex, []byte("hello"), "68656c6c6f", `{"utf8":"hello"}`},
		{PayloadBase64, []byte("hello"), "aGVsbG8=", `{"utf8":"hello"}`},
		{PayloadLen, []byte("hello"), "5 bytes", `{"length":5}`},
		{PayloadRedacted, []byte("h"), "1 byte", `{"length":1}`},
		{PayloadRedacted, nil, "0 bytes", `null`},
	}
	for _, test := range tests {
		if got := string(test.mode.AppendText(nil, test.in)); got != test.text {
			t.Errorf("%v %q: text %q, want %q", test.mode, test.in, got, test.text)
		}
		if got := string(test.mode.AppendJSON(nil, test.in, nil)); got != test.json {
			t.Errorf("%v %q: JSON %s, want %s", test.mode, test.in, got, test.json)
		}
	}
}

func TestPayloadFlag(t *testing.T) {
	var p Payload
	if p.String() != "auto" || p.Resolve(true) != PayloadAuto || p.Resolve(false) != PayloadRaw {
		t.Errorf("default: %v, terminal %v, file %v", p, p.Resolve(true), p.Resolve(false))
	}
	for _, name := range strings.Split(p.Type(), "|") {
		if err := p.Set(name); err != nil || p.String() != name {
			t.Errorf("%s: %v, %v", name, p, err)
		}
		if p.Resolve(false) != p || p.Resolve(true) != p {
			t.Errorf("%s gives way to the terminal", name)
		}
	}
	for _, name := range []string{"", "raw", "AUTO"} {
		if err := p.Set(name); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}

// TestAppendEscaped holds that escaped text stays on its line, is UTF-8, and has nothing that acts on a terminal, and
// that text which needs no escape is unchanged.
func TestAppendEscaped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()),
			func(b []byte) string { return string(b) })).Draw(t, "in")
		out := string(AppendEscaped([]byte("x"), in))[1:]
		harmless := utf8.ValidString(in)
		for _, r := range in {
			harmless = harmless && r >= 0x20 && r != 0x7f && !hidden(r)
		}
		if harmless != (out == in) {
			t.Fatalf("%q became %q", in, out)
		}
		if !utf8.ValidString(out) {
			t.Fatalf("%q became %q, which is not UTF-8", in, out)
		}
		for _, r := range out {
			if r < 0x20 || r >= 0x7f && r < 0xa0 || hidden(r) {
				t.Fatalf("%U is raw in %q", r, out)
			}
		}
	})
}

func TestEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"a\\b\n\r\t\x00\x7f": `a\b\n\r\t\x00\x7f`,
		"\u0085\u202e\ufeff": `\u0085\u202e\ufeff`,
		"👩\u200d💻 naïve":     "👩\u200d💻 naïve",
		"\U000E0041":         `\U000e0041`,
		"\xed\xa0\x80":       `\xed\xa0\x80`,
		"\xf0\x9f":           `\xf0\x9f`,
		"\uFFFD":             "\uFFFD",
	} {
		if got := Escaped(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestParseTime(t *testing.T) {
	now := time.UnixMilli(1700000000000) // 2023-11-14T22:13:20Z
	for text, want := range map[string]int64{
		"0":                           0,
		"-1":                          -1,
		"1700000000000":               1700000000000,
		"now":                         1700000000000,
		"2023-11-14T22:13:20Z":        1700000000000,
		"2023-11-14T22:13:20":         1700000000000,
		"2023-11-14 22:13:20":         1700000000000,
		"2023-11-14T22:13:20.123456Z": 1700000000123,
		"2023-11-14T23:13:20+01:00":   1700000000000,
		"2023-11-14T22:13":            1699999980000,
		"2023-11-14T23:13+01:00":      1699999980000,
		"2023-11-14":                  1699920000000,
		"-2h":                         1699992800000,
		"-3d":                         1699740800000,
		"-1d12h":                      1699870400000,
		"-1.5h":                       1699994600000,
		"+30m":                        1700001800000,
		"-1w":                         1699395200000,
		"-250ms":                      1699999999750,
		"-10s":                        1699999990000,
	} {
		if got, err := ParseTime(text, now); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "-", "+", "soon", "2h", "-h", "-2y", "-2hh", "--2h", "-1e5h", "2023-13-01", "14.11.2023", "99999999999999999999",
		"-99999999999999w", "-..h",
	} {
		if got, err := ParseTime(text, now); err == nil {
			t.Errorf("%q was taken as %d", text, got)
		}
	}
}

func TestHuman(t *testing.T) {
	tests := []struct{ got, want string }{
		{Count(0), "0"}, {Count(999), "999"}, {Count(1000), "1,000"}, {Count(48112), "48,112"},
		{Count(-1000), "-1,000"}, {Count(-999), "-999"}, {Count(-123456), "-123,456"}, {Count(math.MaxInt64),
			"9,223,372,036,854,775,807"},
		{Count(math.MinInt64), "-9,223,372,036,854,775,808"},
		{Plural(1, "batch", "batches"), "1 batch"}, {Plural(0, "batch", "batches"), "0 batches"},
		{Plural(2000, "batch", "batches"), "2,000 batches"},
		{Bytes(0), "0 B"}, {Bytes(1023), "1023 B"}, {Bytes(1024), "1 KiB"}, {Bytes(1843), "1.8 KiB"},
		{Bytes(1 << 20), "1 MiB"},
		{Bytes(1<<20 - 1), "1 MiB"}, {Bytes(3 << 30), "3 GiB"}, {Bytes(math.MaxInt64), "8 EiB"}, {Bytes(-2048), "-2 KiB"},
		{Duration(0), "0 ms"}, {Duration(350), "350 ms"}, {Duration(2200), "2.2 s"}, {Duration(12 * 60000), "12 min"},
		{Duration(19800000), "5.5 h"}, {Duration(786240000), "9.1 d"}, {Duration(-365 * 86400000), "-365 d"},
		{Duration(math.MinInt64), "-106751991167 d"},
		{Instant(1700000000000), "2023-11-14 22:13:20.000"}, {Minute(1700000000000), "2023-11-14 22:13"},
		{Instant(math.MaxInt64), "9223372036854775807"}, {Instant(minWritableMs), "0000-01-01 00:00:00.000"},
		{string(AppendRFC3339(nil, maxWritableMs)), "9999-12-31T23:59:59.999Z"},
		{string(AppendRFC3339(nil, maxWritableMs+1)), "253402300800000"},
	}
	for _, test := range tests {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

func TestThemeLeavesTheEnvironmentAlone(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	if got := NewTheme(true).Bad("x"); !strings.HasPrefix(got, "\x1b[31mx") {
		t.Errorf("a theme that is on does not colour: %q", got)
	}
	if got := (Theme{}).Bad("x"); got != "x" {
		t.Errorf("the zero theme colours: %q", got)
	}
	if got := NewTheme(true).Bad(""); got != "" {
		t.Errorf("nothing is coloured: %q", got)
	}
}

func TestWhen(t *testing.T) {
	var w When
	if !w.On(true) || w.On(false) {
		t.Error("auto does not follow the terminal")
	}
	if err := w.Set("always"); err != nil || !w.On(false) {
		t.Error("always is not on")
	}
	if err := w.Set("never"); err != nil || w.On(true) {
		t.Error("never is on")
	}
	if err := w.Set("yes"); err == nil {
		t.Error("yes was taken")
	}
}

func TestProgress(t *testing.T) {
	at := time.UnixMilli(0)
	var out strings.Builder
	p := NewProgress(&out, 4<<20, func() time.Time { return at })
	p.Add(1 << 20)
	at = at.Add(900 * time.Millisecond)
	p.Add(0)
	if out.Len() > 0 {
		t.Fatalf("a bar within the first second: %q", out.String())
	}
	p.Clear()
	if out.Len() > 0 {
		t.Fatalf("a bar that is not there was cleared: %q", out.String())
	}
	at = at.Add(1100 * time.Millisecond)
	p.Add(1 << 20)
	p.Add(1)
	want := "\r\x1b[K" + strings.Repeat("█", 15) + strings.Repeat("░", 15) + "   50%  2 MiB of 4 MiB  1 MiB/s  2 s left"
	if out.String() != want {
		t.Fatalf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	p.Clear()
	p.Clear()
	if out.String() != "\r\x1b[K" {
		t.Fatalf("clearing wrote %q", out.String())
	}

	out.Reset()
	unknown := NewProgress(&out, 0, func() time.Time { return at })
	at = at.Add(2 * time.Second)
	unknown.Add(4 << 20)
	if out.String() != "\r\x1b[K4 MiB  2 MiB/s" {
		t.Fatalf("without a total: %q", out.String())
	}
	var none *Progress
	none.Add(1)
	none.Clear()
}

// A bar never reaches the last column, in a terminal of any width, and says as much as fits.
func TestProgressFitsTheTerminal(t *testing.T) {
	for width := range 120 {
		for _, p := range []*Progress{{total: 1 << 40}, {total: 5, unit: "partitions"}, {}} {
			p.Within(func() int { return width })
			line := p.line(600<<30, 4*time.Hour)
			if n := utf8.RuneCountInString(line); width > 0 && n >= width || width > 20 && line == "" {
				t.Errorf("%d columns: %q has %d", width, line, n)
			}
			if width > 100 && p.total > 0 && !strings.HasPrefix(line, strings.Repeat("█", 10)) {
				t.Errorf("%d columns: %q", width, line)
			}
		}
	}
}

func TestBriefCutsBetweenRunes(t *testing.T) {
	for pad := range 4 {
		long := []byte(strings.Repeat("x", pad) + strings.Repeat("é", mostBrief))
		beginning, rest := Brief(long)
		if !utf8.Valid(beginning) || len(beginning) > mostBrief || len(beginning) < mostBrief-4 || !strings.Contains(rest,
			Count(int64(len(long)))) {
			t.Errorf("%d bytes and %q", len(beginning), rest)
		}
		if short, none := Brief(long[:100]); len(short) != 100 || none != "" {
			t.Errorf("%d bytes and %q", len(short), none)
		}
	}
}
