package verify

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/format"
	"kseg/internal/fixture"
)

const (
	cleanData1    = "4.4.0/logdirs/clean/data1"
	cleanData2    = "4.4.0/logdirs/clean/data2"
	cleanMeta     = "4.4.0/logdirs/clean/meta"
	killed1       = "4.4.0/logdirs/killed/data1"
	compacted     = "4.4.0/compacted"
	recoveryFile  = "recovery-point-offset-checkpoint"
	watermarkFile = "replication-offset-checkpoint"
)

// stateDamage is damage of state files and directories: the log directories, of which dir[i] is a copy, what is done to
// them, and what is then found that was not before, as "severity code file position offsets".
var stateDamage = []struct {
	name string
	dirs []string
	edit func(t *testing.T, dir []string)
	want []string
}{
	{"snapshot entry after the log", []string{txnBase}, func(t *testing.T, dir []string) {
		editSnapshot(t, dir[0], 246, func(e []format.ProducerEntry) {
			e[slices.IndexFunc(e, format.ProducerEntry.HasBatch)].LastSequence--
		})
	}, []string{"warning snapshot-content 00000000000000000246.snapshot 10 211-213"}},
	{"snapshot of a transaction that ended", []string{txnBase}, func(t *testing.T, dir []string) {
		editSnapshot(t, dir[0], 169, func(e []format.ProducerEntry) { e[0].CurrentTxnFirstOffset = 3 })
	}, []string{"warning snapshot-content 00000000000000000169.snapshot 10 161-162"}},
	{"snapshot without an open transaction", []string{txnBase}, func(t *testing.T, dir []string) {
		editSnapshot(t, dir[0], 266, func(e []format.ProducerEntry) {
			for i := range e {
				e[i].CurrentTxnFirstOffset = -1
			}
		})
	}, []string{"warning snapshot-content 00000000000000000266.snapshot - 264",
		"warning snapshot-content 00000000000000000266.snapshot 148 264"}},
	{"snapshot of a producer that never wrote", []string{plainBase}, func(t *testing.T, dir []string) {
		editSnapshot(t, dir[0], 64, func(e []format.ProducerEntry) { e[0].ProducerID += 5 })
	}, []string{"warning snapshot-content 00000000000000000064.snapshot 10 -"}},
	{"snapshot of what comes later, in a compacted log", []string{compacted}, func(t *testing.T, dir []string) {
		editSnapshot(t, filepath.Join(dir[0], "users-0"), 375, func(e []format.ProducerEntry) { e[0].LastOffset = 375 })
	}, []string{"warning snapshot-content users-0/00000000000000000375.snapshot 10 0-3"}},
	{"snapshot after a compacted log", []string{compacted}, func(t *testing.T, dir []string) {
		editSnapshot(t, filepath.Join(dir[0], "users-0"), 460, func(e []format.ProducerEntry) { e[1].LastOffset = 5 })
	}, []string{"warning snapshot-content users-0/00000000000000000460.snapshot 56 416-423"}},
	{"snapshot ahead of a whole stretch of a compacted log", []string{compacted}, func(t *testing.T, dir []string) {
		editSnapshot(t, filepath.Join(dir[0], "users-0"), 640, func(e []format.ProducerEntry) { e[0].LastOffset++ })
	}, []string{"warning snapshot-content users-0/00000000000000000640.snapshot 10 0-3"}},
	{"snapshot of another time", []string{plainBase}, func(t *testing.T, dir []string) {
		apply(t, dir[0], "rename 00000000000000000120.snapshot 00000000000000000150.snapshot")
	}, []string{"damage snapshot-beyond-end 00000000000000000150.snapshot - 120-149"}},
	{"last segment gone", []string{plainBase}, func(t *testing.T, dir []string) {
		apply(t, dir[0], "remove 00000000000000000096.log\nremove 00000000000000000096.index\nremove "+
			"00000000000000000096.timeindex\n"+
			`write leader-epoch-checkpoint "0\n2\n0 0\n3 120\n"`)
	}, []string{"damage log-end-missing 00000000000000000064.log 2971 96-119"}},
	{"epoch that no batch has", []string{plainBase}, func(t *testing.T, dir []string) {
		apply(t, dir[0], `write leader-epoch-checkpoint "0\n2\n0 0\n3 64\n"`)
	}, []string{"warning leader-epoch-contradiction leader-epoch-checkpoint 8 -"}},
	{"epoch that begins in a batch", []string{plainBase}, func(t *testing.T, dir []string) {
		apply(t, dir[0], `write leader-epoch-checkpoint "0\n2\n0 0\n3 118\n"`)
	}, []string{"warning leader-epoch-contradiction leader-epoch-checkpoint 8 -"}},
	{"epoch of the last batch", []string{plainBase}, func(t *testing.T, dir []string) {
		apply(t, dir[0], "flip 00000000000000000096.log 1870:1")
	}, []string{"warning leader-epoch-contradiction 00000000000000000096.log 1855 116-119"}},
	{"epoch of a batch in the middle", []string{plainBase}, func(t *testing.T, dir []string) {
		apply(t, dir[0], "flip 00000000000000000032.log 1099:0")
	}, []string{"warning leader-epoch-order 00000000000000000032.log 1084 44-47"}},
	{"epoch file missing among others", []string{cleanData1}, func(t *testing.T, dir []string) {
		remove(t, dir[0], "prices-0/leader-epoch-checkpoint")
	}, []string{"warning leader-epoch-missing prices-0/leader-epoch-checkpoint - -"}},
	{"epoch file with other blanks", []string{plainBase}, func(t *testing.T, dir []string) {
		apply(t, dir[0], `write leader-epoch-checkpoint "0\n1\n0\t0\n"`)
	}, []string{"note state-file-odd leader-epoch-checkpoint 5 -"}},
	{"recovery point with a column too few", []string{cleanData1}, replaced(recoveryFile, "prices 0 109", "prices 0"),
		[]string{"damage checkpoint-unreadable recovery-point-offset-checkpoint 56 -"}},
	{"recovery point that is no number", []string{cleanData1}, replaced(recoveryFile, "prices 0 109", "prices 0 x"),
		[]string{"warning checkpoint-unreadable recovery-point-offset-checkpoint 65 -"}},
	{"high watermark that is no number", []string{cleanData1}, replaced(watermarkFile, "prices 0 109", "prices 0 x"),
		[]string{"damage checkpoint-unreadable replication-offset-checkpoint 81 -"}},
	{"log start that is no number", []string{cleanData2}, replaced("log-start-offset-checkpoint", "0 30", "0 x"),
		[]string{"warning checkpoint-unreadable log-start-offset-checkpoint 16 -"}},
	{"cleaner's offset that is no number", []string{cleanData1}, replaced("cleaner-offset-checkpoint", "0 78", "0 x"),
		[]string{"warning checkpoint-unreadable cleaner-offset-checkpoint 13 -"}},
	{"negative count", []string{cleanData1}, replaced(watermarkFile, "0\n5\n", "0\n-5\n"),
		[]string{"damage checkpoint-unreadable replication-offset-checkpoint 2 -"}},
	{"recovery point beyond the end", []string{cleanData1}, replaced(recoveryFile, "prices 0 109", "prices 0 119"),
		[]string{"damage recovery-point-beyond-end recovery-point-offset-checkpoint 56 109-118"}},
	{"recovery point beyond the end, killed", []string{killed1}, replaced(recoveryFile, "prices 0 78", "prices 0 178"),
		[]string{"damage recovery-point-beyond-end recovery-point-offset-checkpoint 68 109-177"}},
	{"recovery point below the end", []string{cleanData1}, replaced(recoveryFile, "prices 0 109", "prices 0 9"),
		[]string{"note recovery-point-not-end recovery-point-offset-checkpoint 56 9-108"}},
	{"high watermark beyond the end", []string{cleanData1}, replaced(watermarkFile, "prices 0 109", "prices 0 1090"),
		[]string{"warning high-watermark-beyond-end replication-offset-checkpoint 72 109-1089"}},
	{"high watermark below the start", []string{cleanData2}, replaced(watermarkFile, "audit-log 0 240", "audit-log 0 24"),
		[]string{"warning high-watermark-below-start replication-offset-checkpoint 29 24-29"}},
	{"log start beyond the end", []string{cleanData2}, replaced("log-start-offset-checkpoint", "0 30", "0 300"),
		[]string{"damage log-start-beyond-end log-start-offset-checkpoint 4 240-299"}},
	{"log start below the start", []string{cleanData2}, func(t *testing.T, dir []string) {
		replaceIn(t, filepath.Join(dir[0], "log-start-offset-checkpoint"), "audit-log 0 30", "prices 1 3")
		for _, ext := range []string{"log", "index", "timeindex"} {
			remove(t, dir[0], "prices-1/00000000000000000000."+ext)
		}
	}, []string{"note leader-epoch-below-start prices-1/leader-epoch-checkpoint 4 -",
		"note log-start-below-start log-start-offset-checkpoint 4 -"}},
	{"cleaner beyond the last segment", []string{cleanData1}, replaced("cleaner-offset-checkpoint", "0 78", "0 79"),
		[]string{"note cleaner-offset-range cleaner-offset-checkpoint 4 78"}},
	{"checkpoint of another partition", []string{cleanData1}, replaced(recoveryFile, "prices 0 109", "prices 7 109"),
		[]string{
			"note checkpoint-partition-missing recovery-point-offset-checkpoint - -",
			"note checkpoint-unknown-partition recovery-point-offset-checkpoint 56 -",
		}},
	{"partition listed twice", []string{cleanData1}, replaced(recoveryFile, "inventory 2 76", "prices 0 109"), []string{
		"note checkpoint-partition-missing recovery-point-offset-checkpoint - -",
		"note state-file-odd recovery-point-offset-checkpoint 54 -",
	}},
	{"log cut at a batch, with its indexes", []string{cleanData1}, func(t *testing.T, dir []string) {
		cutLastBatch(t, filepath.Join(dir[0], "prices-0"), "00000000000000000078")
	}, []string{"damage log-end-missing prices-0/00000000000000000078.log 2738 108"}},
	{"zero topic id", []string{plainBase}, func(t *testing.T, dir []string) {
		apply(t, dir[0], `write partition.metadata "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"`)
	}, []string{"damage partition-metadata-unreadable partition.metadata 21 -"}},
	{"partition.metadata missing among others", []string{cleanData1}, func(t *testing.T, dir []string) {
		remove(t, dir[0], "prices-0/partition.metadata")
	}, []string{"warning partition-metadata-missing prices-0/partition.metadata - -"}},
	{"topic id of one of three partitions", []string{cleanData1, cleanData2}, func(t *testing.T, dir []string) {
		replaceIn(t, filepath.Join(dir[0], "inventory-2/partition.metadata"), "topic_id: w", "topic_id: A")
	}, []string{"warning topic-id-differs inventory-2/partition.metadata 11 -"}},
	{"topic id against the metadata", []string{cleanData1, cleanMeta}, func(t *testing.T, dir []string) {
		replaceIn(t, filepath.Join(dir[0], "prices-0/partition.metadata"), "topic_id: 9", "topic_id: A")
	}, []string{"damage topic-id-differs prices-0/partition.metadata 11 -"}},
	{"partition of no topic", []string{cleanData1, cleanMeta}, func(t *testing.T, dir []string) {
		rename(t, dir[0], "prices-0", "prizes-0")
	}, []string{
		"note partition-not-assigned prizes-0/partition.metadata - -",
		"note checkpoint-partition-missing recovery-point-offset-checkpoint - -",
		"note checkpoint-partition-missing replication-offset-checkpoint - -",
		"note checkpoint-unknown-partition recovery-point-offset-checkpoint 56 -",
		"note checkpoint-unknown-partition replication-offset-checkpoint 72 -",
		"note checkpoint-unknown-partition cleaner-offset-checkpoint 4 -",
		"damage partition-absent . - -",
	}},
	{"partition in the other log directory", []string{cleanData1, cleanData2, cleanMeta},
		func(t *testing.T, dir []string) {
			if err := os.Rename(filepath.Join(dir[0], "prices-0"), filepath.Join(dir[1], "prices-0")); err != nil {
				t.Fatal(err)
			}
		}, []string{
			"note checkpoint-unknown-partition recovery-point-offset-checkpoint 56 -",
			"note checkpoint-unknown-partition replication-offset-checkpoint 72 -",
			"note checkpoint-unknown-partition cleaner-offset-checkpoint 4 -",
			"note partition-not-assigned prices-0/partition.metadata - -",
			"note checkpoint-partition-missing recovery-point-offset-checkpoint - -",
			"note checkpoint-partition-missing replication-offset-checkpoint - -",
		}},
	{"meta.properties missing", []string{cleanData1}, func(t *testing.T, dir []string) {
		remove(t, dir[0], "meta.properties")
	}, []string{"damage meta-properties-missing meta.properties - -"}},
	{"meta.properties without node.id", []string{cleanData1}, replaced("meta.properties", "node.id", "node_id"),
		[]string{"damage meta-properties-unreadable meta.properties 122 -"}},
	{"meta.properties of an unknown version", []string{cleanData1}, replaced("meta.properties", "version=1", "version=5"),
		[]string{"damage meta-properties-unreadable meta.properties 78 -"}},
	{"other cluster", []string{cleanData1, cleanData2}, replaced("meta.properties", "cluster.id=A", "cluster.id=B"),
		[]string{"damage cluster-id-differs meta.properties 88 -"}},
	{"other broker", []string{cleanData1, cleanData2}, replaced("meta.properties", "node.id=1", "node.id=3"),
		[]string{"warning node-id-differs meta.properties 32 -"}},
	{"one directory id twice", []string{cleanData1, cleanData2}, replaced("meta.properties", "cOfP_cR_hDC40WnKuljcbA",
		"w7zQJHfd_BCL_IeDSQBGtA"),
		[]string{"damage directory-id-twice meta.properties 42 -"}},
	{"one partition twice", []string{cleanData1, cleanData2}, func(t *testing.T, dir []string) {
		if err := os.CopyFS(filepath.Join(dir[1], "inventory-2"),
			os.DirFS(filepath.Join(dir[0], "inventory-2"))); err != nil {
			t.Fatal(err)
		}
	}, []string{
		"note checkpoint-partition-missing recovery-point-offset-checkpoint - -",
		"note checkpoint-partition-missing replication-offset-checkpoint - -",
		"damage partition-twice inventory-2 - -",
	}},
	{"marker of another kind", []string{cleanData1}, func(t *testing.T, dir []string) {
		apply(t, dir[0], `write .kafka_cleanshutdown "yes"`)
	}, []string{"note clean-shutdown-content .kafka_cleanshutdown 0 -"}},
	{"quorum-state cut off", []string{cleanMeta}, func(t *testing.T, dir []string) {
		apply(t, filepath.Join(dir[0], "__cluster_metadata-0"), "truncate quorum-state 40")
	}, []string{"damage quorum-state-unreadable __cluster_metadata-0/quorum-state 0 -"}},
	{"quorum-state missing", []string{cleanMeta}, func(t *testing.T, dir []string) {
		apply(t, filepath.Join(dir[0], "__cluster_metadata-0"), "remove quorum-state")
	}, []string{"warning quorum-state-missing __cluster_metadata-0/quorum-state - -"}},
	{"quorum-state of an old epoch", []string{cleanMeta},
		replaced("__cluster_metadata-0/quorum-state", `"leaderEpoch":2`, `"leaderEpoch":1`),
		[]string{"warning quorum-state-behind __cluster_metadata-0/quorum-state 0 -"}},
	{"metadata snapshot with a flipped bit", []string{"4.4.0/internal/__cluster_metadata-0"},
		func(t *testing.T, dir []string) {
			apply(t, dir[0], "flip 00000000000000000090-0000000001.checkpoint 700:3")
		}, []string{"damage metadata-snapshot-damaged 00000000000000000090-0000000001.checkpoint 83 -"}},
	{"metadata snapshot without its footer", []string{"4.4.0/internal/__cluster_metadata-0"},
		func(t *testing.T, dir []string) {
			cutLastBatchOf(t, filepath.Join(dir[0], "00000000000000000090-0000000001.checkpoint"))
		}, []string{"damage metadata-snapshot-incomplete 00000000000000000090-0000000001.checkpoint - -"}},
	{"metadata log without its beginning", []string{"4.4.0/internal/__cluster_metadata-0"},
		func(t *testing.T, dir []string) {
			apply(t, dir[0], "remove 00000000000000000090-0000000001.checkpoint")
			cutBeginning(t, dir[0], 50)
		}, []string{
			"note index-missing 00000000000000000053.index - -",
			"note timeindex-missing 00000000000000000053.timeindex - -",
			"damage metadata-snapshot-needed 00000000000000000053.log 0 0-52",
			"note leader-epoch-below-start leader-epoch-checkpoint 4 -",
		}},
	{"metadata log that begins within a snapshot", []string{"4.4.0/internal/__cluster_metadata-0"},
		func(t *testing.T, dir []string) {
			cutBeginning(t, dir[0], 50)
		}, []string{
			"note index-missing 00000000000000000053.index - -",
			"note timeindex-missing 00000000000000000053.timeindex - -",
			"note leader-epoch-below-start leader-epoch-checkpoint 4 -",
		}},
	{"entries left by a truncation", []string{"4.4.0/replicas/diverged/b2"}, func(t *testing.T, dir []string) {
		apply(t, filepath.Join(dir[0], "t1-0"), "put 00000000000000000000.index 184 0000003d0000107b0000003e000010ff")
	}, []string{"note index-stale t1-0/00000000000000000000.index 184 61-62"}},
	{"a wrong entry among right ones", []string{"4.4.0/replicas/diverged/b2"}, func(t *testing.T, dir []string) {
		apply(t, filepath.Join(dir[0], "t1-0"), "flip 00000000000000000000.index 175:3")
	}, []string{"warning index-invalid t1-0/00000000000000000000.index 168 60"}},
	{"metadata snapshot ahead of the log", []string{"4.4.0/internal/__cluster_metadata-0"},
		func(t *testing.T, dir []string) {
			apply(t, dir[0], "rename 00000000000000000090-0000000001.checkpoint 00000000000000000190-0000000001.checkpoint")
		}, []string{"note metadata-snapshot-ahead 00000000000000000190-0000000001.checkpoint - 137-189"}},
	{"segment under a short name", []string{plainBase}, func(t *testing.T, dir []string) {
		apply(t, dir[0], "rename 00000000000000000032.log 32.log")
	}, []string{"damage odd-file-name 32.log - -"}},
	{"second name of a segment", []string{plainBase}, func(t *testing.T, dir []string) {
		apply(t, dir[0], "copy 00000000000000000032.index 00000000000000000032.copy.index")
	}, []string{"warning index-without-log 00000000000000000032.copy.index - -"}},
	{"unfinished checkpoint", []string{cleanData1}, func(t *testing.T, dir []string) {
		apply(t, dir[0], "copy "+recoveryFile+" "+recoveryFile+".tmp\ncopy "+recoveryFile+" prices-0/"+recoveryFile)
	}, []string{
		"note misplaced-file prices-0/recovery-point-offset-checkpoint - -",
		"note leftover-temporary recovery-point-offset-checkpoint.tmp - -",
	}},
	{"directories of others", []string{cleanData1}, func(t *testing.T, dir []string) {
		mkdir(t, filepath.Join(dir[0], "lost+found"))
		mkdir(t, filepath.Join(dir[0], "remote-log-index-cache"))
		mkdir(t, filepath.Join(dir[0], "prices-0", "old"))
	}, []string{"note unknown-directory prices-0/old - -", "damage unknown-directory lost+found - -"}},
	{"a partition that is being deleted, and cannot be loaded", []string{cleanData1}, func(t *testing.T, dir []string) {
		writeFile(t, filepath.Join(dir[0], "doomed-0.61ff0ed15c184741a4c8be2748a54102-delete", "partition.metadata"), nil)
	}, []string{"damage partition-metadata-unreadable " +
		"doomed-0.61ff0ed15c184741a4c8be2748a54102-delete/partition.metadata 0 -"}},
	{"a partition without a directory", cleanDirs, func(t *testing.T, dir []string) {
		removeAll(t, dir[0], "prices-0")
	}, []string{
		"note checkpoint-unknown-partition recovery-point-offset-checkpoint 56 -",
		"note checkpoint-unknown-partition replication-offset-checkpoint 72 -",
		"note checkpoint-unknown-partition cleaner-offset-checkpoint 4 -",
		"damage partition-absent . - -",
	}},
	{"a wiped log directory", cleanDirs, func(t *testing.T, dir []string) {
		for _, name := range subdirs(t, dir[0]) {
			removeAll(t, dir[0], name)
		}
		for _, name := range []string{recoveryFile, "replication-offset-checkpoint", "cleaner-offset-checkpoint",
			"log-start-offset-checkpoint"} {
			remove(t, dir[0], name)
		}
	}, []string{"damage partition-absent . - -"}},
	{"a copy of a part, not knowing", []string{cleanData1}, func(t *testing.T, dir []string) {
		removeAll(t, dir[0], "doomed-0.61ff0ed15c184741a4c8be2748a54102-delete")
	}, nil},
	{"a directory with a snapshot's name", cleanDirs, func(t *testing.T, dir []string) {
		mkdir(t, filepath.Join(dir[2], "__cluster_metadata-0", "00000000000000000150-0000000003.checkpoint"))
	}, []string{
		"note unknown-directory __cluster_metadata-0/00000000000000000150-0000000003.checkpoint - -",
		"damage broker-does-not-start __cluster_metadata-0 - -",
	}},
	{"a directory for an index", cleanDirs, func(t *testing.T, dir []string) {
		name := "00000000000000000078.index"
		remove(t, filepath.Join(dir[0], "prices-0"), name)
		mkdir(t, filepath.Join(dir[0], "prices-0", name))
	}, []string{
		"note index-missing prices-0/00000000000000000078.index - -",
		"note unknown-directory prices-0/00000000000000000078.index - -",
		"damage log-directory-offline prices-0/00000000000000000078.index - -",
	}},
	{"a directory for what is about to be written", cleanDirs, func(t *testing.T, dir []string) {
		mkdir(t, filepath.Join(dir[0], "prices-0", "leader-epoch-checkpoint.tmp"))
	}, []string{
		"note unknown-directory prices-0/leader-epoch-checkpoint.tmp - -",
		"damage log-directory-offline prices-0/leader-epoch-checkpoint.tmp - -",
	}},
	{"a move that was finished, beside what was there", cleanDirs, func(t *testing.T, dir []string) {
		copyDir(t, filepath.Join(dir[0], "prices-0"), filepath.Join(dir[0], future))
	}, []string{
		"note leftover-directory " + future + " - -",
		"damage broker-does-not-start " + future + " - -",
	}},
	{"a move that was finished with less", cleanDirs, func(t *testing.T, dir []string) {
		copyDir(t, filepath.Join(dir[0], "prices-0"), filepath.Join(dir[1], "prices-0"))
		rename(t, dir[0], "prices-0", future)
		for _, ext := range []string{"log", "index", "timeindex"} {
			remove(t, filepath.Join(dir[0], future), "00000000000000000078."+ext)
		}
	}, []string{
		"note leftover-directory " + future + " - -",
		"warning leader-epoch-beyond-end " + future + "/leader-epoch-checkpoint 8 78-108",
		"note partition-not-assigned prices-0/partition.metadata - -",
		"note checkpoint-partition-missing recovery-point-offset-checkpoint - -",
		"note checkpoint-partition-missing replication-offset-checkpoint - -",
		"damage partition-replaced prices-0 - 78-108",
	}},
	{"an older snapshot of the metadata", []string{"4.4.0/internal"}, func(t *testing.T, dir []string) {
		apply(t, filepath.Join(dir[0], "__cluster_metadata-0"), "flip 00000000000000000000-0000000000.checkpoint 200:3")
	}, []string{"warning metadata-snapshot-damaged __cluster_metadata-0/00000000000000000000-0000000000.checkpoint 83 -"}},
	{"the snapshot that the log replaces, cut", cleanDirs, func(t *testing.T, dir []string) {
		apply(t, filepath.Join(dir[2], "__cluster_metadata-0"), "truncate 00000000000000000000-0000000000.checkpoint 100")
	}, []string{"warning metadata-snapshot-damaged __cluster_metadata-0/00000000000000000000-0000000000.checkpoint 83 -"}},
	{"the snapshot that the log replaces, zeroed", cleanDirs, func(t *testing.T, dir []string) {
		apply(t, filepath.Join(dir[2], "__cluster_metadata-0"), "zero 00000000000000000000-0000000000.checkpoint 0+411")
	}, []string{"damage metadata-snapshot-damaged __cluster_metadata-0/00000000000000000000-0000000000.checkpoint 0 -"}},
	{"files of the quorum where nobody reads them", cleanDirs, func(t *testing.T, dir []string) {
		apply(t, filepath.Join(dir[0], "prices-0"), "write quorum-state \"x\"\nwrite 0.checkpoint \"x\"")
		apply(t, dir[0], "write bootstrap.checkpoint \"x\"")
	}, []string{
		"note misplaced-file prices-0/0.checkpoint - -",
		"note misplaced-file prices-0/quorum-state - -",
		"warning metadata-snapshot-damaged bootstrap.checkpoint 0 -",
	}},
	{"a metadata log that is gone", cleanDirs, func(t *testing.T, dir []string) {
		removeAll(t, dir[2], "__cluster_metadata-0")
	}, []string{"warning metadata-log-absent . - -"}},
	{"a directory id that Kafka keeps for itself", []string{cleanData1}, replaced("meta.properties",
		"cOfP_cR_hDC40WnKuljcbA", "AAAAAAAAAAAAAAAAAAAAAQ"), []string{
		"damage meta-properties-unreadable meta.properties 42 -",
	}},
	{"a node id that is another in one log directory", cleanDirs, replaced("meta.properties", "node.id=1", "node.id=3"),
		[]string{
			"note partition-not-assigned __consumer_offsets-0/partition.metadata - -",
			"note partition-not-assigned a.b_c-d-0/partition.metadata - -",
			"note partition-not-assigned inventory-0/partition.metadata - -",
			"note partition-not-assigned inventory-2/partition.metadata - -",
			"note partition-not-assigned prices-0/partition.metadata - -",
			"damage node-id-differs meta.properties 32 -",
		}},
	{"an empty twin", cleanDirs, func(t *testing.T, dir []string) { mkdir(t, filepath.Join(dir[1], "prices-0")) },
		[]string{
			"note checkpoint-partition-missing recovery-point-offset-checkpoint - -",
			"note checkpoint-partition-missing replication-offset-checkpoint - -",
		}},
	{"stray partition", []string{cleanData1}, func(t *testing.T, dir []string) {
		rename(t, dir[0], "prices-0", "prices-0.0123456789abcdef0123456789abcdef-stray")
	}, []string{"note leftover-directory prices-0.0123456789abcdef0123456789abcdef-stray - -"}},
}

// TestHighWatermarksThatNobodyReads: where all partitions have moved away, that the file cannot be read does nothing.
func TestHighWatermarksThatNobodyReads(t *testing.T) {
	root := fixture.Dir(t, "4.4.0/logdirs/clean")
	one, other := filepath.Join(root, "data1"), filepath.Join(root, "data2")
	apply(t, other, "write replication-offset-checkpoint \"1\\n0\\n\"")
	for _, name := range subdirs(t, other) {
		if err := os.Rename(filepath.Join(other, name), filepath.Join(one, name)); err != nil {
			t.Fatal(err)
		}
	}
	found, _ := runOn(t, Options{Level: CRC}, one, other, filepath.Join(root, "meta"))
	for _, f := range found {
		if f.Severity > Note && line(&f) != "warning checkpoint-unreadable replication-offset-checkpoint 0 -" {
			t.Error(line(&f))
		}
	}
}

func TestStateDamage(t *testing.T) {
	for _, c := range stateDamage {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			var dirs []string
			for _, name := range c.dirs {
				dirs = append(dirs, fixture.Dir(t, name))
			}
			found, _ := runOn(t, Options{Level: Records}, dirs...)
			var healthy []string
			for i := range found {
				healthy = append(healthy, line(&found[i]))
			}
			c.edit(t, dirs)
			found, summary := runOn(t, Options{Level: Records}, dirs...)
			var got []string
			for i := range found {
				if text := line(&found[i]); !slices.Contains(healthy, text) {
					got = append(got, text)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
			if len(summary.NotRead) > 0 {
				t.Errorf("not read: %v", summary.NotRead)
			}
		})
	}
}

// editSnapshot changes the entries of a producer snapshot, and makes its checksum anew.
func editSnapshot(t *testing.T, dir string, offset int64, edit func([]format.ProducerEntry)) {
	t.Helper()
	name := filepath.Join(dir, format.SegmentFileName(offset, format.KindProducerSnapshot))
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := format.DecodeProducerSnapshot(raw)
	if err != nil || snapshot.Len() == 0 {
		t.Fatalf("%s: %d entries, %v", name, snapshot.Len(), err)
	}
	entries := snapshot.Entries()
	edit(entries)
	writeFile(t, name, format.AppendProducerSnapshot(nil, entries))
}

// replaced replaces a text in a file of the first directory.
func replaced(file, old, new string) func(*testing.T, []string) {
	return func(t *testing.T, dir []string) { replaceIn(t, filepath.Join(dir[0], file), old, new) }
}

func replaceIn(t *testing.T, name, old, new string) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(raw), old) != 1 {
		t.Fatalf("%s has %d times %q", name, strings.Count(string(raw), old), old)
	}
	writeFile(t, name, []byte(strings.Replace(string(raw), old, new, 1)))
}

// cutLastBatch takes the last batch out of a segment, and with it the entries of its indexes.
func cutLastBatch(t *testing.T, dir, stem string) {
	t.Helper()
	from := cutLastBatchOf(t, filepath.Join(dir, stem+".log"))
	for _, ext := range []string{".index", ".timeindex"} {
		name := filepath.Join(dir, stem+ext)
		if ext == ".timeindex" || lastPosition(t, name) >= from {
			writeFile(t, name, nil)
		}
	}
}

// cutBeginning takes the batches below the offset out of the first segment, and gives it the name of the first one
// left.
func cutBeginning(t *testing.T, dir string, offset int64) {
	t.Helper()
	name := filepath.Join(dir, format.SegmentFileName(0, format.KindLog))
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for s := format.NewScanner(raw, 0, 0); s.Next(); {
		if b := s.Batch(); b.BaseOffset >= offset {
			writeFile(t, filepath.Join(dir, format.SegmentFileName(b.BaseOffset, format.KindLog)), raw[b.Pos:])
			remove(t, dir, filepath.Base(name))
			return
		}
	}
	t.Fatalf("no batch from offset %d on", offset)
}

func lastPosition(t *testing.T, name string) int64 {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) < 8 {
		return -1
	}
	return int64(be32(raw[len(raw)-4:]))
}

// cutLastBatchOf cuts a file of batches before its last one, and returns where that began.
func cutLastBatchOf(t *testing.T, name string) int64 {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(-1)
	for s := format.NewScanner(raw, 0, -1); s.Next(); {
		last = s.Batch().Pos
	}
	writeFile(t, name, raw[:last])
	return last
}

// cleanDirs are the log directories of one broker.
var cleanDirs = []string{cleanData1, "4.4.0/logdirs/clean/data2", "4.4.0/logdirs/clean/meta"}

const future = "prices-0.0123456789abcdef0123456789abcdef-future"

func removeAll(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func subdirs(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, dir, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, name string) {
	t.Helper()
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
}
