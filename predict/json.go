package predict

import (
	"kseg/broker"
	"kseg/logdir"
	"kseg/render"
)

// AppendJSON appends the broker, then its partitions, each with the files that change, or all of them.
func (b *Broker) AppendJSON(dst []byte, o *Options, allFiles bool) []byte {
	if len(b.Dirs) > 0 {
		dst = b.appendBroker(dst, o)
	}
	for _, p := range b.Partitions {
		if p.Loaded != nil {
			dst = appendPartition(dst, p, allFiles)
		}
	}
	return dst
}

func (b *Broker) appendBroker(dst []byte, o *Options) []byte {
	j := render.NewObj(dst, "predicted_broker")
	var dirs, stops, offline, refused []string
	for _, d := range b.Dirs {
		dirs = append(dirs, d.Dir.Display)
		for _, r := range d.Refused {
			refused = append(refused, reason(r))
		}
		for _, r := range d.Offline {
			offline = append(offline, r.File+": "+r.Text)
		}
	}
	for _, r := range b.Offline {
		offline = append(offline, reason(r))
	}
	for _, r := range b.Stops {
		stops = append(stops, reason(r))
	}
	j.Strs("log_dirs", dirs)
	j.Bool("starts", len(b.Stops) == 0)
	j.Strs("reasons", stops)
	j.Strs("offline", offline)
	j.Strs("unserved", refused)
	j.Strs("vanished_topics", b.Vanished)
	var absent []string
	for _, a := range b.Absent {
		absent = append(absent, a.Name())
	}
	j.Strs("absent_partitions", absent)
	j.StrOrNull("placement_unknown", b.Unplaced)
	j.Strs("notes", b.Notes)
	j.Int("bytes_read", b.BytesRead())
	if o.Rate > 0 {
		j.Float("seconds", b.Seconds(o), 1)
	} else {
		j.Null("seconds")
	}
	j.OpenArray("space")
	for _, s := range b.Space {
		s := orNone(s)
		j.Open("")
		j.IntOrNull("free", s.Free, s.Size > 0)
		j.IntOrNull("total", s.Size, s.Size > 0)
		j.Close()
	}
	j.CloseArray()
	return j.Line()
}

func orNone(s *logdir.FileSystem) logdir.FileSystem {
	if s == nil {
		return logdir.FileSystem{}
	}
	return *s
}

func appendPartition(dst []byte, p *broker.PartitionStart, allFiles bool) []byte {
	dst = appendStart(dst, p)
	for _, f := range p.Files {
		if allFiles || f.Action != broker.Keep {
			dst = appendFile(dst, p, &f)
		}
	}
	return dst
}

func appendStart(dst []byte, p *broker.PartitionStart) []byte {
	j := render.NewObj(dst, "predicted_start")
	j.StrOrNull("topic", p.Partition.Topic)
	j.Str("partition", p.Partition.Name)
	j.Str("shutdown", shutdown(p.Clean))
	j.Int("recovery_point", p.RecoveryPoint)
	loads := p.Failure == nil
	if loads {
		j.Str("outcome", "loads")
		j.Null("reason")
	} else {
		j.Str("outcome", "fails")
		j.Str("reason", p.Failure.Error())
	}
	j.IntOrNull("log_start_offset", p.Loaded.LogStart, loads)
	j.IntOrNull("log_end_offset", p.LogEnd, loads)
	j.IntOrNull("segments", int64(len(p.Segments)), loads)
	j.Int("bytes_read", p.BytesRead)
	j.Int("bytes_lost", p.Lost.Bytes)
	lost := p.Lost.Ranges
	first, last := int64(0), int64(0)
	if n := len(lost); n > 0 {
		first, last = lost[0].First, lost[n-1].Last
	}
	j.IntOrNull("first_lost_offset", first, len(lost) > 0)
	j.IntOrNull("last_lost_offset", last, len(lost) > 0)
	j.Int("lost_offsets", p.Lost.Offsets())
	j.Str("path", p.Partition.Display)
	j.StrOrNull("stray", p.Stray)
	replaced := ""
	if p.Replaced != nil {
		replaced = p.Replaced.Partition.Display
	}
	j.StrOrNull("replaced_by", replaced)
	j.IntOrNull("recovered_segments", recovered(p), loads)
	j.Int("index_interval", p.Interval)
	var hazards []string
	for _, h := range p.Hazards {
		hazards = append(hazards, h.Text)
	}
	j.Strs("hazards", hazards)
	return j.Line()
}

func appendFile(dst []byte, p *broker.PartitionStart, f *broker.FileChange) []byte {
	j := render.NewObj(dst, "predicted_file")
	j.StrOrNull("topic", p.Partition.Topic)
	j.Str("partition", p.Partition.Name)
	j.Str("shutdown", shutdown(p.Clean))
	j.Int("recovery_point", p.RecoveryPoint)
	j.Str("file", f.Name)
	j.IntOrNull("bytes_before", orZero(f.Before), f.Before != nil)
	j.IntOrNull("bytes_after", orZero(f.After), f.After != nil)
	j.Str("action", string(f.Action))
	j.StrOrNull("renamed_to", f.RenamedTo)
	return j.Line()
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func recovered(p *broker.PartitionStart) int64 {
	n := int64(0)
	for _, s := range p.Segments {
		if s.Recovered {
			n++
		}
	}
	return n
}

func shutdown(clean bool) string {
	if clean {
		return "clean"
	}
	return "unclean"
}

// reason is a clause with its file before it.
func reason(r broker.Reason) string {
	if r.File == "" {
		return r.Text
	}
	return r.File + ": " + r.Text
}
