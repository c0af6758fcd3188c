package logdir

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kseg/format"
)

// maxListed bounds how many names a sentence lists.
const maxListed = 12

// checkFilters makes an error of filters that match nothing at all, and a problem of each number that matches nothing.
func (o *opener) checkFilters() error {
	if len(o.kept) == 0 && len(o.skipped) > 0 {
		return fmt.Errorf("%w: no partition matches %s; there are %s", ErrNothing, o.filterText(), topicsText(o.skipped))
	}
	for _, n := range o.opts.Partitions {
		has := func(d format.PartitionDir) bool { return d.Partition == n }
		if len(o.kept)+len(o.skipped) > 0 && !slices.ContainsFunc(o.kept, has) {
			o.problem("", fmt.Errorf("no partition %d; there are %s", n, topicsText(append(o.kept, o.skipped...))))
		}
	}
	if len(o.opts.Segments) == 0 || len(o.kept) == 0 || o.opts.Unlisted {
		return nil
	}
	slices.Sort(o.bases)
	o.bases = slices.Compact(o.bases)
	missing := slices.DeleteFunc(slices.Clone(o.opts.Segments), func(base int64) bool {
		_, found := slices.BinarySearch(o.bases, base)
		return found
	})
	for _, base := range missing {
		err := o.noSegment(base)
		if len(missing) == len(o.opts.Segments) {
			return fmt.Errorf("%w: %s", ErrNothing, err)
		}
		o.problem("", err)
	}
	return nil
}

// filterText repeats the filters as they were given.
func (o *opener) filterText() string {
	var parts []string
	for _, t := range o.opts.Topics {
		parts = append(parts, "--topic "+t)
	}
	for _, t := range o.opts.Exclude {
		parts = append(parts, "--exclude "+t)
	}
	if len(o.opts.Partitions) > 0 {
		parts = append(parts, "--partition "+join(o.opts.Partitions))
	}
	return strings.Join(parts, " ")
}

// noSegment says which segments there are, and which of them holds the offset that was asked for.
func (o *opener) noSegment(base int64) error {
	if len(o.bases) == 0 {
		return fmt.Errorf("no segment %d: there are no segments", base)
	}
	hint := ""
	if i, _ := slices.BinarySearch(o.bases, base); i > 0 {
		hint = fmt.Sprintf("; offset %d would be in segment %d", base, o.bases[i-1])
	}
	return fmt.Errorf("no segment begins at offset %d; there are %s%s", base, join(o.bases), hint)
}

// topicsText is "orders (0, 1, 2), prices (0)".
func topicsText(dirs []format.PartitionDir) string {
	byTopic := map[string][]int32{}
	for _, d := range dirs {
		byTopic[d.Topic] = append(byTopic[d.Topic], d.Partition)
	}
	topics := make([]string, 0, len(byTopic))
	for t := range byTopic {
		topics = append(topics, t)
	}
	slices.Sort(topics)
	more := ""
	if len(topics) > maxListed {
		more = fmt.Sprintf(" and %d more topics", len(topics)-maxListed)
		topics = topics[:maxListed]
	}
	for i, t := range topics {
		numbers := byTopic[t]
		slices.Sort(numbers)
		if t == "" {
			t = "a directory without a topic's name"
		}
		topics[i] = t + " (" + join(slices.Compact(numbers)) + ")"
	}
	return strings.Join(topics, ", ") + more
}

// join lists sorted numbers, leaving out the middle of a long list.
func join[T cmp.Ordered](numbers []T) string {
	texts := make([]string, 0, maxListed)
	for i, n := range numbers {
		if len(numbers) > maxListed && i == maxListed-1 {
			return strings.Join(texts, ", ") + " … " + fmt.Sprint(numbers[len(numbers)-1]) + " (" + strconv.Itoa(len(numbers)) +
				" of them)"
		}
		texts = append(texts, fmt.Sprint(n))
	}
	return strings.Join(texts, ", ")
}
