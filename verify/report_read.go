package verify

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxReportLine bounds a line of a report that is read back, in bytes.
const maxReportLine = 16 << 20

// ErrNoSummary means a report without its last line: the run that wrote it was cut short.
var ErrNoSummary = errors.New("it ends without a summary: the run that wrote it was cut short")

// reportLine is a finding or a summary as JSONReport writes it.
type reportLine struct {
	Kind      string
	Code      string
	Severity  string
	Partition *string
	Producer  *int64 `json:"producer_id"`
	reportPlace
	Count    int
	Message  string
	Evidence []struct {
		Name      string
		Want, Got *string
	}
	Related  []reportPlace
	Next     *string
	LogDirs  int64 `json:"log_dirs"`
	Parts    int64 `json:"partitions"`
	Segments int64
	Files    int64
	Batches  int64
	Records  *int64
	Bytes    int64
	Findings struct{ Damage, Warning, Note int64 }
	Stopped  bool     `json:"stopped_early"`
	NotRead  []string `json:"not_read"`
	Shard    int
	Shards   int
	Sampled  int
	Of       int `json:"sampled_of"`
}

type reportPlace struct {
	File        *string
	Position    *int64
	Length      *int64
	FirstOffset *int64 `json:"first_offset"`
	LastOffset  *int64 `json:"last_offset"`
}

// ReadReport reads what JSONReport wrote: it calls emit for each finding, and returns the summary. The error wraps
// ErrNoSummary if that is missing, and names the line that is none of a report.
func ReadReport(r io.Reader, emit func(*Finding) error) (*Summary, error) {
	var summary *Summary
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxReportLine)
	for number := 1; lines.Scan(); number++ {
		var l reportLine
		err := json.Unmarshal(lines.Bytes(), &l)
		switch {
		case err == nil && l.Kind == "finding":
			err = emit(l.finding())
		case err == nil && l.Kind == "summary":
			summary = l.summary()
		case err == nil:
			err = fmt.Errorf("the kind %q is none of a report of kseg verify -o json", l.Kind)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if summary == nil {
		return nil, ErrNoSummary
	}
	return summary, nil
}

func (l *reportLine) finding() *Finding {
	severity, _ := ParseSeverity(l.Severity)
	f := &Finding{Code: l.Code, Severity: severity, Partition: orEmpty(l.Partition), Producer: l.Producer,
		Place: l.place(), Message: l.Message,
		Next: orEmpty(l.Next), Count: l.Count}
	f.Shown = f.File
	for _, e := range l.Evidence {
		f.Evidence = append(f.Evidence, Evidence{Name: e.Name, Want: orEmpty(e.Want), Got: orEmpty(e.Got)})
	}
	for i := range l.Related {
		f.Related = append(f.Related, l.Related[i].place())
	}
	return f
}

func (p *reportPlace) place() Place {
	return Place{File: orEmpty(p.File), Pos: orNone(p.Position), Len: orNone(p.Length), FirstOffset: orNone(p.FirstOffset),
		LastOffset: orNone(p.LastOffset)}
}

func (l *reportLine) summary() *Summary {
	s := &Summary{LogDirs: l.LogDirs, Partitions: l.Parts, Segments: l.Segments, Files: l.Files, Batches: l.Batches,
		Bytes:  l.Bytes,
		Damage: l.Findings.Damage, Warnings: l.Findings.Warning, Notes: l.Findings.Note, Stopped: l.Stopped,
		NotRead: l.NotRead,
		Shard:   l.Shard, Shards: l.Shards, Sampled: l.Sampled, SampledOf: l.Of}
	if l.Records != nil {
		s.Level, s.Records = Records, *l.Records
	}
	return s
}

// Add adds the counts of another run.
func (s *Summary) Add(o *Summary) {
	s.Level = min(s.Level, o.Level)
	s.LogDirs, s.Partitions, s.Segments, s.Files = s.LogDirs+o.LogDirs, s.Partitions+o.Partitions, s.Segments+o.Segments,
		s.Files+o.Files
	s.Batches, s.Records, s.Bytes = s.Batches+o.Batches, s.Records+o.Records, s.Bytes+o.Bytes
	s.Damage, s.Warnings, s.Notes = s.Damage+o.Damage, s.Warnings+o.Warnings, s.Notes+o.Notes
	s.Stopped = s.Stopped || o.Stopped
	s.Sampled, s.SampledOf = s.Sampled+o.Sampled, s.SampledOf+o.SampledOf
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func orNone(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}
