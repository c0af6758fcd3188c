package render

import (
	"strings"
	"testing"
)

func TestCSV(t *testing.T) {
	var out strings.Builder
	c := NewCSV(&out, "row", "name", "n", "d.mean", "list", "ok")
	lines := `{"kind":"row","schema":1,"name":"a,\"b\u001b\n","n":9223372036854775807,"d":{"mean":1.500},` +
		`"list":["x","y"],"ok":true}
{"kind":"other","schema":1,"name":"no"}
{"kind":"row","schema":1,"name":null,"n":null,"d":null,"list":[],"ok":false}
`
	if _, err := c.Write([]byte(lines)); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "name,n,d_mean,list,ok\n\"a,\"\"b\\x1b\\n\",9223372036854775807,1.500,x y,true\n,,,,false\n"
	if out.String() != want {
		t.Errorf("got %q\nwant %q", out.String(), want)
	}
	if _, err := c.Write([]byte("{")); err == nil {
		t.Error("half a line was taken")
	}
}

func TestCSVWithoutRowsHasAHeader(t *testing.T) {
	var out strings.Builder
	if err := NewCSV(&out, "row", "a", "b.c").Flush(); err != nil || out.String() != "a,b_c\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
