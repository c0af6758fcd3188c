//go:build oracle

package broker

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// spoiler damages the directories of a broker, at random: one to three things, of names, small files, checkpoints,
// metadata, indexes and logs.
type spoiler struct {
	t    *testing.T
	rng  *rand.Rand
	root string
	did  []string
}

func (s *spoiler) spoil(root string) string {
	s.root = root
	if s.rng.IntN(2) == 0 {
		for _, dir := range []string{"data1", "data2"} {
			s.does("rm", dir+"/.kafka_cleanshutdown")
			remove(s.t, root, dir+"/.kafka_cleanshutdown")
		}
	}
	for range 1 + s.rng.IntN(3) {
		one(s, s.name, s.smallFile, s.checkpoint, s.metadata, s.files)()
	}
	return strings.Join(s.did, ", ")
}

// one is one of the choices.
func one[T any](s *spoiler, choices ...T) T { return choices[s.rng.IntN(len(choices))] }

func (s *spoiler) does(what ...any) { s.did = append(s.did, strings.TrimSpace(fmt.Sprintln(what...))) }

// partition is the path of one below the root; "" if there is none left.
func (s *spoiler) partition() string {
	all, err := filepath.Glob(filepath.Join(s.root, "data[12]", "*-[0-9]"))
	if err != nil || len(all) == 0 {
		return ""
	}
	rel, _ := filepath.Rel(s.root, all[s.rng.IntN(len(all))])
	return rel
}

const uuid = "0123456789abcdef0123456789abcdef"

// name makes, moves, copies or removes directories.
func (s *spoiler) name() {
	p := s.partition()
	if p == "" {
		return
	}
	name, dir := filepath.Base(p), one(s, "data1", "data2")
	suffixed := name + "." + uuid + one(s, "-future", "-future", "-stray", "-delete")
	to := filepath.Join(dir, one(s, name, suffixed, suffixed, "other-0", "x-"))
	switch s.rng.IntN(5) {
	case 0:
		s.does("rm", p)
		remove(s.t, s.root, p)
	case 1:
		s.does("mv", p, to)
		_ = os.Rename(filepath.Join(s.root, p), filepath.Join(s.root, to))
	case 2:
		s.does("cp", p, to)
		_ = os.CopyFS(filepath.Join(s.root, to), os.DirFS(filepath.Join(s.root, p)))
	default:
		odd := filepath.Join(dir, one(s, "lost+found", "a-1-2", "x-", "-0", "a-0."+uuid+"-future", "prices-00", "prices-7",
			"remote-log-index-cache", "a-0."+uuid+"-delete", ".kafka_cleanshutdown.tmp", "__cluster_metadata-7"))
		s.does("mkdir", odd)
		_ = os.Mkdir(filepath.Join(s.root, odd), 0o755)
	}
}

// put writes a small file; now and then a directory takes its place.
func (s *spoiler) put(name string, contents ...string) {
	content := one(s, contents...)
	path := filepath.Join(s.root, name)
	if s.rng.IntN(8) == 0 {
		s.does("directory", name)
		_ = os.RemoveAll(path)
		_ = os.Mkdir(path, 0o755)
		return
	}
	s.does("write", name, fmt.Sprintf("%q", content))
	_ = os.WriteFile(path, []byte(content), 0o644)
}

func (s *spoiler) smallFile() {
	const cluster = "cluster.id=AABjb3JwdXMAAAAAAABxpA\n"
	if s.rng.IntN(3) == 0 {
		s.put(one(s, "data1", "data2", "meta")+"/meta.properties", "", "\x00\x00", "version=1\nnode.id=1\n"+cluster,
			"version=0\nbroker.id=1\n"+cluster, "version=1\nnode.id=3\n"+cluster, "version = 1\nnode.id : 1\r\n"+cluster,
			"version=1\nnode.id=1 \n"+cluster, "version=7\nnode.id=1\n"+cluster,
			"version=1\nnode.id=1\n"+cluster+"directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n",
			"version=1\nnode.id=1\n"+cluster+"directory.id=cOfP_cR_hDC40WnKuljcbA\n",
			"\xef\xbb\xbfversion=1\nnode.id=1\n"+cluster, "version=1\nnode.id=1\ncluster.id=AABjb3\\\n JwdXMAAAAAAABxpA\n")
		return
	}
	p := s.partition()
	if p == "" {
		return
	}
	if s.rng.IntN(2) == 0 {
		s.put(p+"/partition.metadata", "", "version: 0\ntopic_id: cOfP_cR_hDC40WnKuljcbA\n", "version: 0\n", "x",
			"version: 1\ntopic_id: cOfP_cR_hDC40WnKuljcbA\n", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n")
		return
	}
	s.put(p+"/leader-epoch-checkpoint", "", "0\n0\n", "0\n2\n0 0\n3 50\n", "0\n3\n5 0\n2 40\n7 90\n", "0\n1\n0 x\n",
		"1\n0\n", "0\n9\n0 0\n", "0\n2\n0 10\n1 100000\n")
}

func (s *spoiler) checkpoint() {
	name := one(s, "data1", "data2") + "/" + one(s, "recovery-point", "log-start", "replication", "cleaner") +
		"-offset-checkpoint"
	s.put(name, "", "0\n", "1\n0\n", "0\n-1\n", "0\n3\nprices 0 1\n", "0\n1\nprices 0 x\n", "0\n1\nprices 0 -5\n",
		"0\n1\nprices 0 9223372036854775807\n", "0\r\n1\r\nprices 0 78\r\n", "0\n2\nprices 0 1\nprices 0 39\n",
		"0\n1\nprices 0 50\n", "0\n1\ninventory 0 500\n\n\n", "\x00\x00\x00", "0\n1\nprices -1 5\n")
}

func (s *spoiler) metadata() {
	const dir = "meta/__cluster_metadata-0/"
	const first = dir + "00000000000000000000-0000000000.checkpoint"
	switch s.rng.IntN(6) {
	case 0:
		s.put(dir+"quorum-state", "", "x", `{"data_version":1}`, `{"leaderId":1,"leaderEpoch":9,"votedId":-1,`+
			`"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}`)
	case 1:
		snapshot, _ := os.ReadFile(filepath.Join(s.root, first))
		s.put(dir+one(s, "00000000000000000120-0000000001.checkpoint", "00000000000000000999-0000000009.checkpoint",
			"00000000000000000050-0000000001.checkpoint.part", "9-1.checkpoint", filepath.Base(first)), string(snapshot), "",
			"too short", string(snapshot[:len(snapshot)/2]))
	case 2:
		s.does("rm", dir)
		remove(s.t, s.root, dir)
	default:
		m := fixture.Mutator{Rand: s.rng, Dir: filepath.Join(s.root, dir)}
		m.Step()
		s.does(append([]any{dir}, m.Done)...)
	}
}

// files damages the files of one partition.
func (s *spoiler) files() {
	p := s.partition()
	if p == "" {
		return
	}
	m := fixture.Mutator{Rand: s.rng, Dir: filepath.Join(s.root, p)}
	m.Step()
	s.does(p, m.Done)
}
