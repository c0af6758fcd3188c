package verify

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// maxRelated bounds the list of related places.
const maxRelated = 16

// fold makes one finding of what is one fault: it drops what is ignored, folds what another finding explains, and
// counts what is left by file and code. The result is in the order of files and positions.
func (p *partition) fold() []*Finding {
	for _, f := range p.findings {
		if p.compacted && (f.Code == "txnindex-entry" || f.Code == "txnindex-entry-missing") {
			// the cleaner takes the data of aborted transactions, and with it what the entry could be told from
			f.Severity = Note
		}
		if n := p.counts[fileCode{f.File, f.Code}]; n > mostKept {
			f.Count += n - mostKept
			p.counts[fileCode{f.File, f.Code}] = 0
		}
		if p.compacted && f.Code == "txnindex-entry-missing" {
			f.Severity = Note // the cleaner leaves out entries of which it has removed the records
		}
		if p.dir.Suffix == "delete" && f.Code != "partition-metadata-unreadable" {
			f.Severity = Note // all of it goes, whatever it is like, unless a broker does not come so far
		}
	}
	found := slices.DeleteFunc(p.findings, func(f *Finding) bool {
		return p.driver.opts.Ignore[f.Code] || p.compacted && traits[f.Code]&ofCleaned != 0
	})
	slices.SortStableFunc(found, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Pos, b.Pos))
	})
	found = foldExplained(found)
	return foldRepeated(found)
}

// sentence is a message without what differs from place to place: its numbers, and the names in it that have digits or
// quotes.
func sentence(message string) string {
	words := strings.Fields(message)
	for i, word := range words {
		if strings.ContainsAny(word, "0123456789\"/") {
			words[i] = "#"
		}
	}
	return strings.Join(words, " ")
}

// foldRepeated joins the findings of the same code and severity in the same file that say the same.
func foldRepeated(found []*Finding) []*Finding {
	type repeated struct {
		fileCode
		severity Severity
		sentence string
	}
	first := map[repeated]*Finding{}
	var out []*Finding
	for _, f := range found {
		k := repeated{fileCode{f.File, f.Code}, f.Severity, sentence(f.Message)}
		if first[k] == nil {
			first[k] = f
			out = append(out, f)
			continue
		}
		first[k].Count += f.Count
		first[k].absorb(f)
	}
	return out
}

// relate adds a place to the related ones, if there is room and it is a new one.
func (f *Finding) relate(place Place) {
	if len(f.Related) < maxRelated && !slices.Contains(f.Related, place) && place != f.Place {
		f.Related = append(f.Related, place)
	}
}

// mostCauses bounds how many findings are considered as causes of what was found in other segments.
const mostCauses = 1000

// foldExplained moves findings that follow from another one into its related places; if that one follows from a third,
// into those of the third.
func foldExplained(found []*Finding) []*Finding {
	into := make([]int, len(found)) // the finding that has it now, itself at first
	for i := range into {
		into[i] = i
	}
	byBase := map[int64][]int{}
	var causes []int
	for i := range found {
		byBase[found[i].base] = append(byBase[found[i].base], i)
		if traits[found[i].Code]&(moves|hides|apart) != 0 && len(causes) < mostCauses {
			causes = append(causes, i)
		}
	}
	for i := range found {
		for _, candidates := range [][]int{byBase[found[i].base], causes} {
			for _, j := range candidates {
				if i == j || into[i] != i || !explains(found[j], found[i]) {
					continue
				}
				for into[j] != j {
					j = into[j]
				}
				if i != j {
					into[i] = j
					found[j].absorb(found[i])
				}
			}
		}
	}
	var kept []*Finding
	for i, f := range found {
		if into[i] == i {
			kept = append(kept, f)
		}
	}
	return kept
}

// end is the position after the damage.
func (f *Finding) end() int64 { return max(f.reach, f.Pos+max(f.Len, 0)) }

// absorb takes the places of a finding that follows from f.
func (f *Finding) absorb(effect *Finding) {
	if effect.File == f.File && effect.Pos >= f.Pos && effect.Pos <= f.end() {
		f.reach = max(f.end(), effect.end())
	}
	f.relate(effect.Place)
	for _, place := range effect.Related {
		f.relate(place)
	}
}

// trait says in what ways a finding can be a cause or an effect of others.
type trait uint16

const (
	// Causes, in the log.
	moves trait = 1 << iota // batches or offsets are not where they were: indexes, sequences and states may disagree
	hides                   // the contents of batches are not known: what depends on them may disagree
	times                   // a timestamp is wrong: time indexes may disagree
	apart                   // what is said elsewhere may follow from it, by rules of explainsState
	// Effects.
	ofIndex    // of an offset index
	ofTime     // of a time index
	ofTxnIndex // of a transaction index
	ofProducer // between two batches of a producer
	ofTxn      // of a transaction that lacks its beginning or end
	ofCleaned  // of what the log cleaner does too: nothing is wrong where it was
	ofState    // of a state file that says more than the log, or something else
)

// traits has the codes that can be a cause or an effect.
var traits = map[string]trait{
	"batch-crc-mismatch":  hides,
	"batch-magic":         0,
	"batch-length":        0,
	"batch-count":         moves | hides,
	"batch-codec":         hides,
	"records-undecodable": hides,
	"record-malformed":    hides,
	"record-offset":       moves,
	"damaged-bytes":       moves | hides,
	"torn-tail":           moves | hides,
	"zero-tail":           moves | hides,
	"batch-base-offset":   moves,
	"batch-last-offset":   moves,
	"batch-repeated":      moves,
	"offset-order":        moves,
	"offset-overflow":     moves,
	"offset-gap":          moves | hides | ofCleaned,
	"segment-name":        moves,
	"segment-overlap":     moves,
	"log-end-missing":     moves | hides,
	"segment-log-missing": moves | hides,
	"control-record":      hides,
	"transaction-state":   hides,
	"batch-max-timestamp": times | apart,
	"batch-header":        apart,
	"snapshot-content":    apart,
	"leftover-swap":       apart,
	"odd-file-name":       apart,

	"index-missing":              ofIndex,
	"index-invalid":              ofIndex,
	"index-zero-slots":           ofIndex,
	"index-stray-bytes":          ofIndex,
	"index-inexact":              ofIndex,
	"index-sparse":               ofIndex,
	"index-differs-from-rebuild": ofIndex,
	"index-stale":                ofIndex,

	"timeindex-invalid":              ofTime,
	"timeindex-last-entry":           ofTime,
	"timeindex-zero-slots":           ofTime,
	"timeindex-stray-bytes":          ofTime,
	"timeindex-inexact":              ofTime,
	"timeindex-differs-from-rebuild": ofTime,

	"txnindex-version":       ofTxnIndex,
	"txnindex-entry":         ofTxnIndex,
	"txnindex-entry-missing": ofTxnIndex,
	"txnindex-stray-bytes":   ofTxnIndex,

	"producer-sequence":          ofProducer | ofCleaned | apart,
	"producer-epoch":             ofProducer | ofCleaned | apart,
	"marker-without-transaction": ofTxn,
	"open-transaction":           ofTxn,

	"snapshot-beyond-end":       ofState,
	"recovery-point-beyond-end": ofState,
	"high-watermark-beyond-end": ofState,
	"leader-epoch-beyond-end":   ofState,
	"recovery-point-not-end":    ofState,
	"cleaner-offset-range":      ofState,
	"metadata-snapshot-ahead":   ofState,
}

// endsEarly reports whether a finding says that a log once was longer.
func endsEarly(code string) bool { return beyondEnd[code] || code == "log-end-missing" }

// explains reports whether effect follows from cause.
func explains(cause, effect *Finding) bool {
	from, to := cause.doubtful()
	of, by := traits[effect.Code], traits[cause.Code]
	switch {
	case cause.Severity == Note && effect.Severity > Note:
		return false // where nothing is wrong nothing follows
	case cause.Code == "leftover-swap" && (endsEarly(effect.Code) || effect.Code == "log-start-beyond-end"):
		return cause.FirstOffset <= effect.FirstOffset && effect.LastOffset <= cause.LastOffset
	case cause.Severity < effect.Severity && (effect.Code == "high-watermark-beyond-end" ||
		effect.Code == "recovery-point-beyond-end"):
		return cause.Code == "high-watermark-beyond-end" // a crash is no excuse for what was committed
	case cause.base == effect.base && explainsInSegment(cause, effect), explainsState(cause, effect):
		return true
	case by&(moves|hides) == 0 || from < 0:
		return false
	case effect.Code == "offset-gap" && cause.Code == "segment-log-missing":
		return from == effect.FirstOffset
	case cause.File == effect.File && (standsAfter(cause, effect) || sameHeader(cause, effect)):
		return true
	case of&ofProducer != 0:
		// The fault lies between the two batches that do not fit together, or is one of them.
		return effect.since <= to && effect.LastOffset >= from
	case of&ofTxnIndex != 0:
		return from <= max(effect.LastOffset, effect.FirstOffset)
	case of&ofTxn != 0:
		return to >= effect.FirstOffset || effect.Code == "marker-without-transaction" && from <= effect.FirstOffset
	case of&ofState != 0:
		_, last := effect.doubtful()
		return last+1 >= from && to >= effect.since
	}
	return false
}

// standsAfter: what begins right after damaged bytes, and is out of place there, is part of the same fault.
func standsAfter(cause, effect *Finding) bool {
	outOfPlace := traits[effect.Code]&moves != 0 || effect.Code == "batch-length"
	damaged := traits[cause.Code]&hides != 0 || cause.Code == "record-offset"
	return outOfPlace && damaged && cause.Len > 0 && effect.Pos >= cause.Pos+cause.Len && effect.Pos <= cause.end()
}

// sameHeader: a base offset that is wrong breaks more than one rule.
func sameHeader(cause, effect *Finding) bool {
	return cause.Pos == effect.Pos && (cause.Code == "batch-base-offset" || cause.Code == "offset-overflow" ||
		cause.Code == "offset-order" || cause.Code == "batch-last-offset") &&
		(traits[effect.Code]&moves != 0 || effect.Code == "batch-header")
}

// explainsInSegment is explains for what belongs to the same segment.
func explainsInSegment(cause, effect *Finding) bool {
	from, to := cause.doubtful()
	of, by := traits[effect.Code], traits[cause.Code]
	index := of&(ofIndex|ofTime) != 0
	switch {
	case effect.Code == "log-end-missing" && by&moves != 0:
		return cause.Code == "segment-name" || cause.File == effect.File && cause.Pos+cause.Len == effect.Pos || from >= 0 &&
			from <= effect.FirstOffset && to+1 >= effect.FirstOffset
	case effect.Code == "index-missing":
		return false // nothing in a log takes its index away
	case index && by&moves != 0:
		return cause.Code == "segment-name" || effect.Code == "timeindex-last-entry" || comesAfter(cause, effect)
	case index && by&hides != 0:
		return effect.FirstOffset < 0 || effect.FirstOffset <= to && effect.LastOffset >= from ||
			effect.Code == "timeindex-last-entry"
	case of&ofTime != 0 && by&times != 0:
		return effect.FirstOffset < 0 || effect.FirstOffset >= from
	case cause.File == effect.File && by&of&(ofIndex|ofTime|ofTxnIndex) != 0:
		return worse(cause, effect)
	case of&ofTime != 0 && by&ofIndex != 0:
		return indexExplains(cause.Code, effect.Code)
	}
	return false
}

// comesAfter reports whether an entry of an index is about what stands after the cause or in its offsets, or about the
// whole.
func comesAfter(cause, effect *Finding) bool {
	from, to := cause.doubtful()
	switch {
	case from >= 0 && from <= effect.FirstOffset && effect.LastOffset <= to:
		return true
	case effect.logPos >= 0:
		return effect.logPos >= cause.logPos
	}
	return cause.logPos < 0 || effect.FirstOffset < 0 || effect.FirstOffset >= from
}

// worse orders the findings about one index, which is judged as a whole: the worst comes first, and of equal ones the
// first.
func worse(a, b *Finding) bool {
	if a.Severity != b.Severity || a.Code == b.Code {
		return a.Severity > b.Severity
	}
	return a.Pos < b.Pos || a.Pos == b.Pos && a.Code < b.Code
}

// indexExplains: a lookup by time goes through the offset index, and a rebuild writes both together.
func indexExplains(cause, effect string) bool {
	switch cause {
	case "index-missing", "index-sparse", "index-stray-bytes", "index-inexact", "index-differs-from-rebuild":
		return effect == "timeindex-differs-from-rebuild" || effect == "timeindex-inexact" && cause == "index-inexact"
	case "index-invalid", "index-zero-slots", "index-stale":
		return effect == "timeindex-invalid" || effect == "timeindex-differs-from-rebuild"
	}
	return false
}

// explainsState is explains for state files and directories.
func explainsState(cause, effect *Finding) bool {
	moved := traits[cause.Code]&moves != 0
	overlap := cause.FirstOffset >= 0 && cause.FirstOffset <= effect.LastOffset && effect.FirstOffset <= cause.LastOffset
	switch effect.Code {
	case "state-file-odd":
		return cause.Code != effect.Code && cause.File == effect.File
	case "leader-epoch-contradiction":
		return cause.Code == "leader-epoch-beyond-end" && cause.File == effect.File || (cause.Code == "leader-epoch-order" ||
			moved) && cause.File == effect.File && cause.Pos == effect.Pos ||
			moved && slices.ContainsFunc(effect.Related, func(place Place) bool {
				return place.File == cause.File && place.Pos == cause.Pos
			})
	case "snapshot-stray", "snapshot-missing":
		from, to := cause.doubtful()
		return moved && from >= 0 && from < effect.until && to+1 >= effect.from
	case "snapshot-content":
		if cause.Code == effect.Code { // later snapshots say the same
			return cause.File < effect.File && overlap && cause.FirstOffset == effect.FirstOffset &&
				cause.LastOffset == effect.LastOffset
		}
		// The batch that the entry is about was found to be wrong.
		overlap = overlap || effect.until > 0 && cause.FirstOffset >= effect.from && cause.FirstOffset < effect.until
		return cause.Severity > Note && cause.logPos >= 0 && cause.base >= 0 && overlap
	case "recovery-point-beyond-end":
		return cause.Code == "high-watermark-beyond-end"
	case "offset-gap":
		return cause.Code == "leftover-swap" && overlap
	case "index-missing", "timeindex-missing":
		return cause.Code == "odd-file-name" && cause.base == effect.base
	case "index-without-log":
		return cause.Code == "odd-file-name" && stem(cause.Evidence[0].Want) == stem(filepath.Base(effect.File))
	case "leader-epoch-below-start":
		return cause.Code == "leftover-deleted" || cause.Code == "segment-name"
	}
	return false
}

// stem is a file's name up to its first dot.
func stem(name string) string {
	before, _, _ := strings.Cut(name, ".")
	return before
}
