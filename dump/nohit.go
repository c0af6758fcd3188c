package dump

import (
	"fmt"
	"strconv"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
	"kseg/walk"
)

// mostCounted bounds the bytes of the logs whose headers are read only to say how many records there are.
const mostCounted = 1 << 30

// census is what there is in the logs, whatever passes the filters.
type census struct {
	records    int64
	exact      bool // false where records are in wrappers, or in logs of more than mostCounted
	partitions map[*logdir.Partition]bool
	last       *format.Batch // of the last log
}

// sayNoHit says that nothing passed the filters, of how many records, and where the log ends.
func (d *dumper) sayNoHit(set *logdir.Set) {
	if !d.opts.Filter.Active() || d.wrote || d.opts.Compat || d.opts.Quiet || d.opts.Limit == 0 || d.result.Records > 0 {
		return
	}
	c := census{exact: true, partitions: map[*logdir.Partition]bool{}}
	room := int64(mostCounted)
	for _, f := range set.Files() {
		if !isLog(f) || f.Name.Leftover() || d.ctx.Err() != nil {
			continue
		}
		c.partitions[f.Partition] = true
		if room -= f.Size; room < 0 {
			c.exact = false
			continue
		}
		// What cannot be read was told when it was to be printed.
		_ = walk.Read(d.ctx, &walk.Log{File: f, Base: f.Name.Base}, nil, c.count)
	}
	if len(c.partitions) == 0 {
		return
	}
	text := "no record matches"
	if c.exact {
		text = "0 of " + render.Count(c.records) + " records match"
	}
	fmt.Fprintf(d.errOut, "kseg: %s%s\n", text, c.where(&d.opts.Filter))
}

// count adds a batch of a log.
func (c *census) count(b *format.Batch, _ *format.Hole) bool {
	if b != nil {
		last := *b
		last.Raw = nil
		c.last = &last
		c.exact = c.exact && b.Count >= 0
		c.records += int64(max(b.Count, 0))
	}
	return true
}

// where says how far the logs go, if that is not too much to say.
func (c *census) where(filter *Filter) string {
	switch {
	case len(c.partitions) > 1:
		return ", in " + render.Plural(int64(len(c.partitions)), "partition", "partitions")
	case c.last == nil || !c.exact:
		return ""
	}
	text := "; the last offset is " + strconv.FormatInt(c.last.LastOffset, 10)
	if (filter.FromTime != nil || filter.ToTime != nil) && c.last.MaxTimestamp != render.NoTimestamp {
		text += ", " + render.Minute(c.last.MaxTimestamp) + " UTC"
	}
	return text
}
