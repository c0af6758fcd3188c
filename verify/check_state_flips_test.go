package verify

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

// smallLogDir writes a log directory with one partition of one record, as a broker leaves it after a clean stop. The
// record was deleted by a request, so that the log start is known.
func smallLogDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := fixture.Copy(filepath.Join(dir, "hello-0"), "4.4.0/hello/hello-0"); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		recoveryFile:                  "0\n1\nhello 0 1\n",
		watermarkFile:                 "0\n1\nhello 0 1\n",
		"log-start-offset-checkpoint": "0\n1\nhello 0 1\n",
		"cleaner-offset-checkpoint":   "0\n1\nhello 0 0\n",
		"meta.properties": "#\n#S\nnode.id=1\ndirectory.id=cOfP_cR_hDC40WnKuljcbA\nversion=1\n" +
			"cluster.id=AABjb3JwdXMAAAAAAABxpA\n",
		".kafka_cleanshutdown": `{"version":0,"brokerEpoch":13}`,
	} {
		writeFile(t, filepath.Join(dir, name), []byte(content))
	}
	return dir
}

// invisible says why a change of a state file cannot be seen: what it says now could be true as well. It is "" if the
// change must be found.
func invisible(file string, before, after []byte) string {
	switch filepath.Base(file) {
	case "meta.properties":
		return invisibleProperty(before, after)
	case "partition.metadata":
		m, err := format.DecodePartitionMetadata(after)
		if id := m.TopicID; err == nil && string(after) == "version: 0\ntopic_id: "+id.String() && id[6]>>4 == 4 &&
			id[8]>>6 == 2 {
			return "a topic id that could be one, and no other partition of the topic"
		}
	case ".kafka_cleanshutdown":
		text, _ := strings.CutPrefix(string(after), `{"version":0,"brokerEpoch":`)
		if epoch, err := strconv.Atoi(strings.TrimSuffix(text, "}")); err == nil &&
			string(after) == fmt.Sprintf(`{"version":0,"brokerEpoch":%d}`, epoch) {
			return "a broker epoch, which is nowhere else"
		}
	case "leader-epoch-checkpoint":
		if string(after) == "0\n1\n0 1\n" {
			return "epochs are cut where records are deleted, and the one record may have been"
		}
	}
	return ""
}

func invisibleProperty(before, after []byte) string {
	values := func(raw []byte) map[string]string {
		m := map[string]string{}
		properties, err := format.DecodeProperties(raw)
		for _, p := range properties {
			m[p.Key] = p.Value
		}
		if err != nil {
			m["error"] = err.Error()
		}
		return m
	}
	was, is := values(before), values(after)
	if maps.Equal(was, is) {
		return "a comment"
	}
	id, err := format.ParseUUID(is["directory.id"])
	_, clusterErr := format.ParseUUID(is["cluster.id"])
	node, nodeErr := strconv.Atoi(is["node.id"])
	if err == nil && id.String() == is["directory.id"] && nodeErr == nil && strconv.Itoa(node) == is["node.id"] &&
		clusterErr == nil && plainUUID(is["cluster.id"]) && len(is) == len(was) && is["version"] == "1" {
		return "the identity of another broker, cluster or directory, and no other log directory"
	}
	return ""
}

// Each flipped bit of a state file is reported, but for those that make it say something else that could be true.
func TestEveryFlippedBitOfStateFiles(t *testing.T) {
	for _, file := range []string{recoveryFile, watermarkFile, "log-start-offset-checkpoint", "cleaner-offset-checkpoint",
		"meta.properties", ".kafka_cleanshutdown", "hello-0/leader-epoch-checkpoint", "hello-0/partition.metadata"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			dir := smallLogDir(t)
			unseen := everyFlip(t, dir, file, 1)
			if want := invisibleBits(t, filepath.Join(dir, file)); !slices.Equal(unseen, want) {
				t.Errorf("not seen: %s\nexpected: %s", strings.Join(unseen, " "), strings.Join(want, " "))
			}
		})
	}
}

func invisibleBits(t *testing.T, name string) []string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var bits []string
	for pos := range content {
		for bit := range 8 {
			flipped := slices.Clone(content)
			flipped[pos] ^= 1 << bit
			if invisible(name, content, flipped) != "" {
				bits = append(bits, fmt.Sprintf("%d:%d", pos, bit))
			}
		}
	}
	return bits
}

// Each flipped bit of a producer snapshot is reported: the checksum covers all but the version, of which there is one.
func TestEveryFlippedBitOfSnapshot(t *testing.T) {
	t.Parallel()
	dir := fixture.Dir(t, plainBase)
	if unseen := everyFlip(t, dir, "00000000000000000032.snapshot", 4); len(unseen) > 0 {
		t.Errorf("not seen: %v", unseen)
	}
}

// Two epochs, of which the second began at the end of the log, "0 0" and "2 109". A flipped bit is reported, but for
// those of the first start offset, which is cut where records are deleted, and those that make epoch 2 another one that
// no batch has.
func TestEveryFlippedBitOfEpochs(t *testing.T) {
	t.Parallel()
	dir := fixture.Dir(t, cleanData1+"/prices-0")
	if unseen := everyFlip(t, dir, "leader-epoch-checkpoint", 1); !slices.Equal(unseen, []string{"6:0", "6:1", "6:2",
		"6:3", "8:0", "8:2"}) {
		t.Errorf("not seen: %v", unseen)
	}
}

// FuzzStateFiles reads any bytes as any of the state files: no panic, and every position lies in the file.
func FuzzStateFiles(f *testing.F) {
	names := []string{recoveryFile, watermarkFile, "log-start-offset-checkpoint", "cleaner-offset-checkpoint",
		"meta.properties", ".kafka_cleanshutdown", "hello-0/leader-epoch-checkpoint", "hello-0/partition.metadata",
		"hello-0/00000000000000000001.snapshot", "__cluster_metadata-0/quorum-state",
		"__cluster_metadata-0/leader-epoch-checkpoint", "__cluster_metadata-0/00000000000000000001-0000000001.checkpoint"}
	for i, content := range []string{"0\n1\nhello 0 1\n", "0\n", "0\n2\nhello 0 1\nhello 0 9999\n", "",
		"#\nnode.id=1\nversion=1\ncluster.id=x\n", "{}", "0\n2\n0 0\n1 1\n", "version: 0\ntopic_id: 2kzhCdWMRGekhmxs3vSlmA",
		string(format.AppendProducerSnapshot(nil, []format.ProducerEntry{{ProducerID: 1}})),
		`{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":0}`, "0\n1\n5 0\n",
		string(fixture.AppendBatch(nil, fixture.Batch{Records: []fixture.Record{{}}}))} {
		f.Add(uint8(i), []byte(content))
	}
	dir := f.TempDir()
	for _, name := range []string{"hello-0", "__cluster_metadata-0"} {
		if err := fixture.Copy(filepath.Join(dir, name), "4.4.0/hello/hello-0"); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, content []byte) {
		name := filepath.Join(dir, names[int(which)%len(names)])
		before, err := os.ReadFile(name)
		writeFile(t, name, content)
		found, _ := runOn(t, Options{Level: Records}, dir)
		for i := range found {
			p := &found[i].Place
			if filepath.Join(dir, p.File) == name && (p.Pos > int64(len(content)) || p.Len > int64(len(content))-max(p.Pos, 0)) {
				t.Errorf("%s: byte %d and %d bytes, of %d", found[i].Code, p.Pos, p.Len, len(content))
			}
		}
		if err == nil {
			writeFile(t, name, before)
		} else if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	})
}
