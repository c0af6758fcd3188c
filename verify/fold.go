package verify

import (
	"cmp"
	"slices"
)

// maxRelated bounds the list of related places.
const maxRelated = 16

// fold makes one finding of what is one fault: it drops what is ignored, folds what another finding explains, and
// counts what is left by file and code. The result is in the order of files and positions.
func (p *partition) fold() []Finding {
	found := slices.DeleteFunc(p.findings, func(f Finding) bool {
		return p.driver.opts.Ignore[f.Code] || f.Code == "offset-gap" && p.compacted
	})
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Pos, b.Pos))
	})
	found = foldExplained(found)
	return foldRepeated(found)
}

// foldRepeated joins the findings of the same code in the same file.
func foldRepeated(found []Finding) []Finding {
	type key struct{ file, code string }
	first := map[key]int{}
	var out []Finding
	for _, f := range found {
		k := key{f.File, f.Code}
		i, seen := first[k]
		if !seen {
			first[k] = len(out)
			out = append(out, f)
			continue
		}
		out[i].Count += f.Count
		out[i].relate(f.Place)
		for _, r := range f.Related {
			out[i].relate(r)
		}
	}
	return out
}

// relate adds a place to the related ones, if there is room and it is a new one.
func (f *Finding) relate(place Place) {
	if len(f.Related) < maxRelated && !slices.Contains(f.Related, place) && place != f.Place {
		f.Related = append(f.Related, place)
	}
}

// foldExplained moves findings that follow from another one into its related places.
func foldExplained(found []Finding) []Finding {
	gone := make([]bool, len(found))
	for i := range found {
		for j := range found {
			if i != j && !gone[i] && !gone[j] && explains(&found[j], &found[i]) {
				gone[i] = true
				found[j].relate(found[i].Place)
				for _, r := range found[i].Related {
					found[j].relate(r)
				}
			}
		}
	}
	var kept []Finding
	for i, f := range found {
		if !gone[i] {
			kept = append(kept, f)
		}
	}
	return kept
}

// explains reports whether effect follows from cause.
func explains(cause, effect *Finding) bool { return false }
