// Package arch holds tests of the module's structure: who imports whom, who opens files, what a text may mention.
// The rules are explained in docs/architecture.md.
package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	module = "kseg"
	root   = "../.."
)

// verbImports are the rooms that any verb may use; verbs do not import each other, so that each can be read alone.
var verbImports = []string{"logdir", "format", "schema", "state", "walk", "broker", "rebuild", "render"}

// mayImport says which of our packages each package may import. "*" stands for all of them.
var mayImport = map[string]struct {
	ours []string
	why  string
}{
	"":           {[]string{"cmd"}, "main only starts cmd"},
	"cmd":        {[]string{"*"}, ""},
	"dump":       {verbImports, "a verb uses the rooms below it, not another verb"},
	"lookup":     {verbImports, "a verb uses the rooms below it, not another verb"},
	"verify":     {verbImports, "a verb uses the rooms below it, not another verb"},
	"retention":  {verbImports, "a verb uses the rooms below it, not another verb"},
	"ls":         {verbImports, "a verb uses the rooms below it, not another verb"},
	"predict":    {verbImports, "a verb uses the rooms below it, not another verb"},
	"txn":        {verbImports, "a verb uses the rooms below it, not another verb"},
	"groups":     {verbImports, "a verb uses the rooms below it, not another verb"},
	"metadata":   {verbImports, "a verb uses the rooms below it, not another verb"},
	"compaction": {verbImports, "a verb uses the rooms below it, not another verb"},
	"compare":    {verbImports, "a verb uses the rooms below it, not another verb"},
	"salvage":    {verbImports, "a verb uses the rooms below it, not another verb"},
	"rebuild": {[]string{"logdir", "format", "schema", "state", "walk", "broker"},
		"files are written as a broker would, whatever is printed about it"},
	"broker": {[]string{"logdir", "format", "schema", "state", "walk"}, "the model of a broker computes, it " +
		"does not print"},
	"walk":    {[]string{"logdir", "format"}, "runs of batches are the same for all who read them"},
	"explain": {append(slices.Clone(verbImports), "lookup"), "explain shows lookup's steps, but no other verb"},
	"state": {[]string{"logdir", "format", "schema", "walk"}, "what a log folds to does not depend on how " +
		"it is shown"},
	"schema":           {[]string{"format"}, "record schemas lie on top of the layouts"},
	"logdir":           {[]string{"format"}, "logdir needs the table of file kinds and nothing else"},
	"render":           {nil, "writers know values, not Kafka"},
	"format":           {nil, "the layouts are pure functions over bytes"},
	"internal/fixture": {[]string{"format"}, "fixtures are made of layouts, not of the code under test"},
	"docs":             {nil, "pages that the program can print, and nothing else"},
	"docs/gen": {[]string{"cmd", "verify", "internal/fixture"}, "the generators print what the command line " +
		"says of itself"},
	"internal/bench": {[]string{"format"}, "benchmarks write their own segments"},
}

// onlyImporter says which packages may import a library, by import path prefix.
var onlyImporter = []struct {
	prefix string
	by     []string
	why    string
}{
	{"github.com/spf13/", []string{"cmd", "docs/gen"}, "flags and commands are cmd's; the rest takes plain options"},
	{"golang.org/x/term", []string{"cmd"}, "whether there is a terminal is decided once, in cmd"},
	{"github.com/olekukonko/", []string{"render"}, "tables are render's"},
	{"github.com/fatih/color", []string{"render"}, "colour is render's"},
	{"golang.org/x/sys/", []string{"logdir"}, "mappings are logdir's"},
	{"github.com/klauspost/compress", []string{"format"}, "codecs are format's, with their bounds"},
	{"github.com/pierrec/lz4", []string{"format"}, "codecs are format's, with their bounds"},
	{"github.com/cespare/xxhash", []string{"format"}, "digests are defined beside the layouts that they are of"},
	{"runtime/debug", []string{"logdir", "cmd", "format", "internal/fixture"}, "the fault guard is logdir's; cmd " +
		"reads the build's version; format lets go of memory before a very large batch; tests collect less garbage"},
	{"unsafe", []string{"logdir"}, "nothing but a mapping needs it"},
	{"testing", []string{"internal/fixture"}, "tests do not belong into the program"},
	{"pgregory.net/rapid", []string{"internal/fixture"}, "tests do not belong into the program"},
	{"github.com/google/go-cmp", nil, "tests do not belong into the program"},
	{"github.com/rogpeppe/go-internal", []string{"internal/fixture"}, "tests do not belong into the program"},
	{module + "/internal/fixture", []string{"docs/gen"}, "tests do not belong into the program; the README shows its " +
		"commands at work on test data"},
}

// opens are the calls that reach into the file system to read, writes those that change it.
var (
	opens = map[string][]string{
		"os": {"Open", "OpenFile", "OpenInRoot", "OpenRoot", "ReadFile", "ReadDir", "DirFS", "Stat", "Lstat",
			"Readlink"},
		"path/filepath": {"Walk", "WalkDir", "Glob", "EvalSymlinks"},
		"io/ioutil":     {"ReadFile", "ReadDir"},
		"syscall":       {"Open", "Mmap"},
	}
	writes = map[string][]string{
		"os": {"Create", "CreateTemp", "WriteFile", "Mkdir", "MkdirAll", "MkdirTemp", "Rename", "Remove", "RemoveAll",
			"Truncate", "Chmod", "Chown", "Chtimes", "Link", "Symlink", "CopyFS"},
		"io/ioutil": {"WriteFile", "TempFile", "TempDir"},
	}
)

// readers may call what opens lists; writers may call what writes lists, and stat what they are about to write.
var (
	readers = regexp.MustCompile(`^(logdir|internal|docs)/`)
	writers = regexp.MustCompile(`^(logdir/sys_\w+\.go|cmd/output\w*\.go|rebuild/\w+\.go|salvage/\w+\.go|` +
		`internal/.*|docs/gen/.*)$`)
)

// kindName is what the constants of format.Kind are called.
var kindName = regexp.MustCompile(`^Kind[A-Z]\w*$`)

// source is one parsed Go file of the module that is not a test.
type source struct {
	name string // with slashes, below the module
	pkg  string // its directory, "" for the module's root
	file *ast.File
	fset *token.FileSet
}

// sources parses every non-test Go file of the module.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	fset := token.NewFileSet()
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "testdata/") {
			return
		}
		f, err := parser.ParseFile(fset, filepath.Join(root, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(name)
		if dir == "." {
			dir = ""
		}
		all = append(all, source{name, dir, f, fset})
	})
	if len(all) == 0 {
		t.Fatal("no Go file found: the test looks at the wrong place")
	}
	return all
}

// walk calls fn for each file of the repository, hidden folders left out.
func walk(t *testing.T, fn func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && name != "." && d.Name() != ".ci" {
				return fs.SkipDir
			}
			return nil
		}
		fn(name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// longest is how many characters a line of Go has at most; a tab counts as one.
const longest = 120

func TestLineLength(t *testing.T) {
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".go") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if n := utf8.RuneCountInString(line); n > longest {
				t.Errorf("%s:%d: %d characters, break the line after at most %d", name, i+1, n, longest)
			}
		}
	})
}

var stackTrace = regexp.MustCompile(`debug\.(PrintStack|Stack)\(|(^|[^.\w])println\(`)

// TestNoStackTrace: users see sentences, and whoever looks for a fault takes the looking away again.
func TestNoStackTrace(t *testing.T) {
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if stackTrace.MatchString(line) {
				t.Errorf("%s:%d: %s: prints a stack, or past the writers of a verb", name, i+1, strings.TrimSpace(line))
			}
		}
	})
}

// room returns the entry of mayImport that pkg belongs to: itself or a parent, so that docs/gen/man is docs/gen.
func room(pkg string) (string, bool) {
	for p := pkg; ; p = path.Dir(p) {
		if p == "." {
			return "", pkg == ""
		}
		if _, ok := mayImport[p]; ok {
			return p, true
		}
	}
}

func TestImports(t *testing.T) {
	for _, src := range sources(t) {
		rule, ok := room(src.pkg)
		if !ok {
			t.Errorf("%s: package %s is not in the table of internal/arch: say there what it may import, and in "+
				"docs/architecture.md why", src.name, src.pkg)
			continue
		}
		for _, spec := range src.file.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if ours, ok := strings.CutPrefix(imp, module+"/"); ok && ours != src.pkg {
				to, _ := room(ours)
				may := mayImport[rule]
				if to != rule && !slices.Contains(may.ours, to) && !slices.Contains(may.ours, "*") {
					t.Errorf("%s imports %s: %s", src.name, imp, may.why)
				}
			}
			for _, only := range onlyImporter {
				if (imp == only.prefix || strings.HasPrefix(imp, strings.TrimSuffix(only.prefix, "/")+"/")) &&
					!slices.Contains(only.by, rule) {
					t.Errorf("%s imports %s, which is for %v: %s", src.name, imp, only.by, only.why)
				}
			}
		}
	}
}

func TestFileAccess(t *testing.T) {
	for _, src := range sources(t) {
		names := importNames(src.file)
		ast.Inspect(src.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			id, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			imp := names[id.Name]
			at := src.fset.Position(sel.Pos()).Line
			canWrite := writers.MatchString(src.name)
			if slices.Contains(opens[imp], sel.Sel.Name) && !readers.MatchString(src.name) && !canWrite {
				t.Errorf("%s:%d calls %s.%s: only logdir opens files, so that one place answers for read-only, faults and "+
					"vanished files", src.name, at, id.Name, sel.Sel.Name)
			}
			if slices.Contains(writes[imp], sel.Sel.Name) && !canWrite {
				t.Errorf("%s:%d calls %s.%s: only cmd/output*.go, rebuild and salvage write, and never beside the inputs",
					src.name, at, id.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

// importNames maps the names by which a file calls its imports to their paths.
func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(imp)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = imp
	}
	return names
}

func TestPackageNamesSayWhatTheyHold(t *testing.T) {
	vague := []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "lib", "pkg", "base", "core"}
	for _, src := range sources(t) {
		for part := range strings.SplitSeq(src.pkg, "/") {
			if slices.Contains(vague, part) {
				t.Errorf("%s: a package called %q holds anything and says nothing", src.name, part)
			}
		}
	}
}

// mostLines is how long a function may be, its doc comment not counted.
const mostLines = 70

func TestFunctionsAreShortAndDoNotPanic(t *testing.T) {
	for _, src := range sources(t) {
		for _, decl := range src.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			first, last := src.fset.Position(fn.Pos()).Line, src.fset.Position(fn.End()).Line
			if n := last - first + 1; n > mostLines {
				t.Errorf("%s:%d: %s has %d lines: cut it into steps that have a name", src.name, first, fn.Name.Name, n)
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id.Name == "panic" && src.pkg != "internal/fixture" {
					t.Errorf("%s:%d: %s panics: hostile input must end in an error", src.name, src.fset.Position(n.Pos()).Line,
						fn.Name.Name)
				}
				return true
			})
		}
	}
}

// A verb that asks the table of kinds knows a new one without being told.
func TestKindsAreAskedFor(t *testing.T) {
	for _, src := range sources(t) {
		ast.Inspect(src.file, func(n ast.Node) bool {
			clause, ok := n.(*ast.CaseClause)
			if !ok {
				return true
			}
			ask := func(e ast.Expr) {
				id, ok := e.(*ast.Ident)
				if sel, is := e.(*ast.SelectorExpr); is {
					id, ok = sel.Sel, true
				}
				if ok && kindName.MatchString(id.Name) && id.Name != "KindUnknown" {
					t.Errorf("%s:%d: case %s: put what differs by kind into the table of format/kinds.go, or into one beside the "+
						"code that passes over kinds it does not have", src.name, src.fset.Position(e.Pos()).Line, id.Name)
				}
			}
			for _, e := range clause.List {
				ask(e)
				ast.Inspect(e, func(n ast.Node) bool {
					if compared, ok := n.(*ast.BinaryExpr); ok {
						ask(compared.X)
						ask(compared.Y)
					}
					return true
				})
			}
			return true
		})
	}
}

// The linker passes over a variable that does not exist in silence.
func TestMakefileStampsWhatExists(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	stamps := regexp.MustCompile(`-X `+module+`/(\w+)\.(\w+)=`).FindAllStringSubmatch(string(text), -1)
	if len(stamps) == 0 {
		t.Error("nothing is stamped")
	}
	for _, stamp := range stamps {
		found := slices.ContainsFunc(sources(t), func(src source) bool {
			return src.pkg == stamp[1] && src.file.Scope.Lookup(stamp[2]) != nil
		})
		if !found {
			t.Errorf("the Makefile stamps %s, which does not exist", stamp[0])
		}
	}
}

// A package that starts goroutines is tested with the race detector.
func TestMakefileRacesWhatIsConcurrent(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	raced := strings.Fields(regexp.MustCompile(`(?m)^RACE_PKGS := (.*)$`).FindString(string(text)))
	for _, src := range sources(t) {
		if strings.HasPrefix(src.pkg, "internal/") || slices.Contains(raced, "./"+src.pkg) {
			continue
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			_, starts := n.(*ast.GoStmt)
			if sel, ok := n.(*ast.SelectorExpr); ok {
				pkg, _ := sel.X.(*ast.Ident)
				starts = starts || sel.Sel.Name == "Go" || pkg != nil && pkg.Name == "walk" &&
					slices.Contains([]string{"Start", "Ordered"}, sel.Sel.Name)
			}
			if starts {
				t.Errorf("%s:%d starts a goroutine: add ./%s to RACE_PKGS in the Makefile", src.name,
					src.fset.Position(n.Pos()).Line, src.pkg)
			}
			return true
		})
	}
}

var (
	unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	upward     = regexp.MustCompile(`(?:\.\./)+[A-Za-z0-9_.-]+`)
	machine    = regexp.MustCompile(`(?:^|[\s"'=(:])/(?:home|Users|root|work)/\w`)
)

// TestTextsStandAlone keeps the repository free of what only its writer's machine has, and of unfinished ends.
func TestTextsStandAlone(t *testing.T) {
	walk(t, func(name string) {
		if strings.HasPrefix(name, "testdata/golden/") || strings.HasPrefix(name, "testdata/logdirs/") ||
			strings.HasPrefix(name, "internal/arch/") {
			return
		}
		if ext := path.Ext(name); !slices.Contains([]string{".go", ".md", ".sh", ".yml", ".txtar", ".txt", ".mod", ".xml",
			".json", ".html", ""}, ext) {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return // the program that make build leaves here
		}
		for i, line := range strings.Split(string(text), "\n") {
			if m := unfinished.FindString(line); m != "" {
				t.Errorf("%s:%d: %s: finish it, or file it elsewhere", name, i+1, m)
			}
			if m := machine.FindString(line); m != "" {
				t.Errorf("%s:%d: %q exists on one machine only", name, i+1, m)
			}
			for _, up := range upward.FindAllString(line, -1) {
				if p := path.Join(path.Dir(name), up); strings.HasPrefix(p, "..") && !strings.HasSuffix(name, ".go") {
					t.Errorf("%s:%d: %s leaves the repository: a clone alone must do", name, i+1, up)
				}
			}
		}
	})
}
