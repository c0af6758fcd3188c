package cmd_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kseg/internal/fixture"
)

// batchDamage are the codes of what is wrong with a batch itself, whatever is around it.
var batchDamage = []string{"batch-base-offset", "batch-codec", "batch-count", "batch-crc-mismatch", "batch-last-offset",
	"batch-length", "batch-magic", "batch-max-timestamp", "damaged-bytes", "record-malformed", "records-undecodable"}

// otherwise says where a verb rightly answers another question than whether a batch is damaged.
var otherwise = map[string]string{
	"compare baseoffset-plus1":                "its records are whole",
	"compare baseoffset-below-segment":        "its records are whole",
	"compare lastoffsetdelta-plus3-crc-fixed": "its records are whole",
	"compare maxtimestamp-plus1day-crc-fixed": "its records are whole",
	"dump maxtimestamp-plus1day-crc-fixed":    "it shows the header, and the records that gainsay it",
	"compare duplicate-batch":                 "records of the same offset are two answers to one question",
	"compare duplicate-batch-at-end":          "records of the same offset are two answers to one question",
	"compare swapped-batches":                 "records whose offsets go back are not where they are looked for",
	"compare segments-overlap":                "records of the same offset are two answers to one question",
	"dump duplicate-batch":                    "offsets that go back are damage of the log",
	"dump duplicate-batch-at-end":             "offsets that go back are damage of the log",
	"dump swapped-batches":                    "offsets that go back are damage of the log",
	"dump leaderepoch-changed":                "epochs that go back are what it says",
	"dump leaderepoch-negative":               "epochs that go back are what it says",
	"dump bad-log-name":                       "it does not know where the log begins",
	"dump segment-renamed-plus1":              "offsets below the segment's are damage of the log",
	"dump torn-last-batch":                    "the rest of a batch is no batch",
	"dump torn-last-batch-in-header":          "the rest of a batch is no batch",
	"dump torn-last-batch-10-bytes":           "the rest of a batch is no batch",
	"dump torn-last-batch-16-bytes":           "the rest of a batch is no batch",
	"dump torn-middle-segment":                "the rest of a batch is no batch",
	"compare torn-middle-segment":             "the rest of a batch is no batch",
	"dump snapshot-bad-crc":                   "it judges snapshots too",
	"dump snapshot-bad-version":               "it judges snapshots too",
	"dump snapshot-truncated":                 "it judges snapshots too",
	"dump snapshot-last-bad-crc":              "it judges snapshots too",
	"compare zero-tail-middle-segment":        "offsets are missing after the zeros",
}

// Verbs agree with verify about which batches are damaged: dump ends with 1 where there is one, salvage has something
// to say about each, the fingerprints have a damaged range. A verb that looks for something else and passes over a
// damaged batch goes through.
func TestVerbsAgreeOnDamage(t *testing.T) {
	for i, r := range fixture.Recipes(t) {
		if !fixture.Sampled(i, 3) {
			continue
		}
		dir := fixture.Damaged(t, r.Name)
		damaged := false
		out, _, _ := kseg("verify", "-o", "json", dir)
		for line := range strings.Lines(out) {
			var f struct{ Severity, Code string }
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Fatal(err)
			}
			damaged = damaged || f.Severity == "damage" && slices.Contains(batchDamage, f.Code)
		}
		for _, line := range []string{"dump --records DIR", "compare --fingerprint DIR", "salvage --dry-run -o NEW DIR"} {
			verb, _, _ := strings.Cut(line, " ")
			_, stderr, code := kseg(strings.Fields(strings.NewReplacer("DIR", dir, "NEW", filepath.Join(t.TempDir(),
				"new")).Replace(line))...)
			_, differs := otherwise[verb+" "+r.Name]
			if agrees := (code != 0) == damaged || verb == "salvage" && !damaged; agrees == differs {
				t.Errorf("%s of %s: code %d; damaged, says verify: %v; differs: %v\n%s", verb, r.Name, code, damaged, differs,
					stderr)
			}
		}
		for _, line := range []string{"lookup --sweep DIR", "lookup --offset 5 DIR", "density DIR", "retention DIR",
			"compaction --topic-config cleanup.policy=compact DIR", "txn --all DIR", "predict DIR", "ls --stats --records DIR"} {
			if _, stderr, code := kseg(strings.Fields(strings.Replace(line, "DIR", dir, 1))...); code > 1 {
				t.Errorf("%s, %s: code %d: %s", r.Name, line, code, stderr)
			}
		}
	}
}
