package ls

import "kseg/render"

func maybe(o *render.Obj, name string, n Maybe) { o.IntOrNull(name, n.N, n.OK) }

func maybeTime(o *render.Obj, name string, ms Maybe) {
	if !ms.OK {
		ms.N = render.NoTimestamp
	}
	o.Time(name, ms.N)
}

// appendSums appends what topics, partitions and log directories have in common.
func appendSums(o *render.Obj, s *Sums) {
	o.Int("segments", s.Segments)
	o.Int("size", s.Usage.Bytes)
	o.Int("allocated", s.Usage.Allocated)
	o.Int("linked_size", s.Linked.Bytes)
	o.Int("log_size", s.LogBytes)
	o.Int("records", s.Records)
	o.Bool("records_exact", !s.Estimated && s.Unread == 0)
	o.Int("unread", s.Unread)
	maybeTime(o, "first_timestamp", s.FirstMs)
	maybeTime(o, "last_timestamp", s.LastMs)
	o.Int("index_slack", s.Slack)
	o.Int("maps", s.Maps)
}

func appendAge(o *render.Obj, lastMs Maybe, nowMs int64) {
	o.IntOrNull("age_ms", nowMs-lastMs.N, lastMs.OK)
}

// AppendJSON appends the row as a topic_size, partition or segment line.
func (r *Row) AppendJSON(dst []byte, nowMs int64) []byte {
	switch {
	case r.Segment != nil:
		return r.appendSegment(dst)
	case r.Topic != nil:
		return r.Topic.appendJSON(dst, nowMs)
	}
	return r.Partition.appendJSON(dst, nowMs)
}

func (t *Topic) appendJSON(dst []byte, nowMs int64) []byte {
	o := render.NewObj(dst, "topic_size")
	o.Str("topic", t.Name)
	o.StrOrNull("topic_id", t.ID)
	o.StrOrNull("cleanup_policy", t.Policy)
	o.Int("partitions", t.Sums.Partitions)
	appendSums(&o, &t.Sums)
	appendAge(&o, t.LastMs, nowMs)
	appendStats(&o, t.Stats)
	o.Strs("log_dirs", t.Dirs)
	return o.Line()
}

func (p *Partition) appendJSON(dst []byte, nowMs int64) []byte {
	o := render.NewObj(dst, "partition")
	o.Str("topic", p.Topic)
	o.Int("partition", int64(p.PartitionDir.Partition))
	o.Str("path", p.Display)
	o.StrOrNull("log_dir", p.Dir)
	o.StrOrNull("topic_id", p.TopicID)
	o.StrOrNull("cleanup_policy", p.Policy)
	maybe(&o, "first_offset", p.FirstOffset)
	maybe(&o, "last_offset", p.LastOffset)
	appendSums(&o, &p.Sums)
	appendAge(&o, p.LastMs, nowMs)
	appendStats(&o, p.Stats)
	maybe(&o, "active_segment", p.Active)
	o.StrOrNull("active_evidence", string(p.Evidence))
	return o.Line()
}

func (r *Row) appendSegment(dst []byte) []byte {
	s, p := r.Segment, r.Partition
	o := render.NewObj(dst, "segment")
	o.Str("topic", p.Topic)
	o.Int("partition", int64(p.PartitionDir.Partition))
	o.Str("path", p.Display)
	o.Int("base_offset", s.Base)
	o.Int("size", s.Size)
	o.Int("allocated", s.Allocated)
	o.Int("index_size", s.IndexSize)
	o.Int("index_allocated", s.IndexAllocated)
	o.Bool("active", s.Active)
	maybe(&o, "batches", s.Batches)
	o.IntOrNull("records", s.Records, !s.Unread || s.Estimated)
	o.Bool("records_exact", !s.Estimated && !s.Unread)
	maybe(&o, "first_offset", s.FirstOffset)
	maybe(&o, "last_offset", s.LastOffset)
	maybeTime(&o, "first_timestamp", s.FirstMs)
	maybeTime(&o, "last_timestamp", s.LastMs)
	maybe(&o, "index_entries", s.Entries)
	o.Int("index_slack", s.Slack)
	o.Int("maps", 2)
	return o.Line()
}

// AppendJSON appends the leftover as a line.
func (l Leftover) AppendJSON(dst []byte) []byte {
	o := render.NewObj(dst, "leftover")
	o.Str("path", l.Display)
	o.Str("what", l.What)
	o.Int("size", l.Usage.Bytes)
	o.Int("allocated", l.Usage.Allocated)
	o.Str("removal", l.Removal)
	return o.Line()
}

// AppendJSON appends a line for each log directory, and one for all operands together, whose path is null.
func (s *Summary) AppendJSON(dst []byte) []byte {
	for _, d := range s.Dirs {
		o := render.NewObj(dst, "log_dir")
		o.Str("path", d.Display)
		o.Int("partitions", d.Sums.Partitions)
		appendSums(&o, &d.Sums)
		room := func(name string, n int64) { o.IntOrNull(name, n, d.RoomKnown) }
		room("free_bytes", d.Room.Free)
		room("total_bytes", d.Room.Size)
		room("free_inodes", d.Room.FreeFiles)
		room("total_inodes", d.Room.Files)
		o.Int("closed_bytes", d.ClosedBytes)
		o.Null("twins")
		dst = o.Line()
	}
	o := render.NewObj(dst, "log_dir")
	o.Null("path")
	o.Int("partitions", s.Total.Partitions)
	appendSums(&o, &s.Total)
	for _, name := range []string{"free_bytes", "total_bytes", "free_inodes", "total_inodes"} {
		o.Null(name)
	}
	o.Int("closed_bytes", s.Total.ClosedBytes)
	o.OpenArray("twins")
	for _, twin := range s.Twins.List() {
		o.Open("")
		o.Str("partition", twin.Partition.String())
		o.Strs("log_dirs", twin.Dirs)
		o.Close()
	}
	o.CloseArray()
	return o.Line()
}
