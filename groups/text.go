package groups

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kseg/format"
	"kseg/render"
	"kseg/state"
)

// Style says how text is printed.
type Style struct {
	Theme render.Theme
	Width int
	NowMs int64
	// All shows every committed offset, and the members; else only the first, which hurt most.
	All bool
}

// shownLines is how many committed offsets are shown where nobody asked for all.
const shownLines = 40

// AppendText appends the answer, a line a group, and a line a committed offset.
func (r *Report) AppendText(dst []byte, s Style) []byte {
	for _, line := range render.Wrap(r.answer(s.Theme), s.Width) {
		dst = append(append(dst, line...), '\n')
	}
	if len(r.Groups) == 0 {
		return dst
	}
	dst = append(dst, '\n')
	dst = r.appendGroups(dst, s)
	lines := r.lines()
	if len(lines) > 0 {
		dst = append(dst, '\n')
		shown := len(lines)
		if !s.All {
			shown = min(shown, shownLines)
		}
		dst = appendLines(dst, lines[:shown], s)
		if shown < len(lines) {
			dst = fmt.Appendf(dst, "  … %s more: --group, --topic, or -o table|json|csv\n",
				render.Count(int64(len(lines)-shown)))
		}
	}
	if s.All {
		dst = r.appendMembers(dst, s)
	}
	return dst
}

func (r *Report) answer(theme render.Theme) string {
	commits, pending, out, unsure := 0, 0, 0, 0
	worst, worstGroup := int64(0), ""
	for _, g := range r.Groups {
		lag, _, n := g.Lag()
		out += n
		if lag > worst {
			worst, worstGroup = lag, g.ID
		}
		for _, l := range g.Lines {
			switch {
			case l.Pending:
				pending++
			case l.HasOffset():
				commits++
			}
			if l.Unsure {
				unsure++
			}
		}
	}
	parts := []string{render.Plural(int64(len(r.Groups)), "group", "groups"),
		render.Plural(int64(commits), "committed offset", "committed offsets")}
	if pending > 0 {
		parts = append(parts, theme.Look(render.Count(int64(pending))+" pending"))
	}
	if out > 0 {
		parts = append(parts, theme.Bad(render.Count(int64(out))+" out of range"))
	}
	if unsure > 0 {
		parts = append(parts, theme.Bad(render.Count(int64(unsure))+" unsure"))
	}
	if worst > 0 {
		parts = append(parts, fmt.Sprintf("the largest lag is %s, of %s", render.Count(worst), render.Escaped(worstGroup)))
	}
	return strings.Join(parts, ", ")
}

func (r *Report) appendGroups(dst []byte, s Style) []byte {
	table := render.NewColumns("nllrrrrlrl").Fit(s.Theme, 1, 3, 7, 8, 9)
	head(table, s.Theme, "group", "type", "state", "epoch", "members", "offsets", "lag", "last commit", "record", "in")
	for _, g := range r.Groups {
		lag, known, out := g.Lag()
		lagText := "-"
		if known {
			lagText = render.Count(lag)
		}
		if out > 0 {
			lagText = s.Theme.Bad(fmt.Sprintf("%s, %d out of range", lagText, out))
		}
		epoch, record := "-", "-"
		if g.HasEpoch {
			epoch = strconv.Itoa(int(g.Epoch))
		}
		if g.HasRecord {
			record = "@" + strconv.FormatInt(g.Record.Offset, 10)
		}
		table.Row(render.Escaped(g.ID), string(g.Kind), orDash(g.State), epoch, strconv.Itoa(len(g.Members)),
			strconv.Itoa(len(g.Lines)), lagText,
			s.Theme.Dim(ago(lastCommit(g), s.NowMs)), record, orDash(g.Source), unsureText(g.Unsure, s.Theme))
	}
	return table.Append(dst, "")
}

func head(table *render.Columns, theme render.Theme, names ...string) {
	for i, name := range names {
		names[i] = theme.Dim(name)
	}
	table.Head(names...)
}

func unsureText(unsure bool, theme render.Theme) string {
	if unsure {
		return theme.Look("unsure")
	}
	return ""
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// lastCommit is the time of the last commit, -1 if there is none.
func lastCommit(g *Group) int64 {
	last := int64(-1)
	for _, l := range g.Lines {
		last = max(last, l.CommitMs)
	}
	return last
}

func ago(ms, nowMs int64) string {
	switch {
	case ms < 0:
		return "-"
	case ms > nowMs:
		return render.Minute(ms)
	}
	return render.Minute(ms) + ", " + render.Duration(nowMs-ms) + " ago"
}

// lines are all lines, those that hurt most first.
func (r *Report) lines() []*groupLine {
	var all []*groupLine
	for _, g := range r.Groups {
		for _, l := range g.Lines {
			all = append(all, &groupLine{g, l})
		}
	}
	slices.SortStableFunc(all, func(a, b *groupLine) int {
		x, y := a.hurt(), b.hurt()
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return all
}

type groupLine struct {
	group *Group
	*Line
}

// topicTitle is the topic, or its id where nobody tells the name.
func (l *Line) topicTitle() string {
	if l.Topic == "" && l.TopicID != (format.UUID{}) {
		return l.TopicID.String()
	}
	return l.Topic
}

func (l *Line) partitionTitle() string {
	return render.Escaped(l.topicTitle()) + "-" + strconv.Itoa(int(l.Partition))
}

func appendLines(dst []byte, lines []*groupLine, s Style) []byte {
	table := render.NewColumns("nnrrrrwllrl").Fit(s.Theme, 8, 9, 7, 3)
	head(table, s.Theme, "group", "partition", "committed", "log start", "log end", "lag", "", "committed at", "expires",
		"record")
	for _, l := range lines {
		committed, start, end, lagText := "-", "-", "-", "-"
		if l.HasOffset() {
			committed = strconv.FormatInt(l.Offset, 10)
		}
		if l.HasLog {
			start, end = strconv.FormatInt(l.Log.Start, 10), strconv.FormatInt(l.Log.End, 10)
		}
		if lag, ok := l.Lag(); ok {
			lagText = render.Count(lag)
		}
		expires := "-"
		if l.Expires {
			expires = render.Minute(l.ExpiresMs)
			if l.ExpiresMs <= s.NowMs {
				expires = s.Theme.Look("expired " + expires)
			}
		}
		commitAt := "-"
		if l.CommitMs >= 0 {
			commitAt = render.Minute(l.CommitMs)
		}
		table.Row(render.Escaped(l.group.ID), l.partitionTitle(), committed, start, end, lagText, l.remark(s.Theme),
			commitAt, expires, "@"+strconv.FormatInt(l.Record.Offset, 10), unsureText(l.Unsure, s.Theme))
	}
	return table.Append(dst, "")
}

// remark says what is special about a line.
func (l *Line) remark(theme render.Theme) string {
	var parts []string
	switch l.OutOfRange {
	case "below_log_start":
		parts = append(parts, theme.Bad("out of range: below the log start"))
	case "beyond_log_end":
		parts = append(parts, theme.Bad("out of range: beyond the log end"))
	}
	if l.Recreated {
		parts = append(parts, theme.Bad("of a topic of that name that was deleted since"))
	}
	switch {
	case l.Pending:
		parts = append(parts, theme.Look(fmt.Sprintf("pending in a transaction of producer %d", l.ProducerID)))
	case !l.HasOffset():
		parts = append(parts, "not begun")
	case l.Share != nil:
		parts = append(parts, "start offset")
	}
	if l.Metadata != "" {
		parts = append(parts, theme.Dim(strconv.Quote(render.Escaped(l.Metadata))))
	}
	return strings.Join(parts, "; ")
}

func (r *Report) appendMembers(dst []byte, s Style) []byte {
	table := render.NewColumns("nnnlrw").Fit(s.Theme, 3, 4)
	head(table, s.Theme, "group", "member", "client", "host", "epoch", "assigned")
	any := false
	for _, g := range r.Groups {
		for _, m := range g.Members {
			any = true
			epoch, id := "-", m.ID
			if m.HasEpoch {
				epoch = strconv.Itoa(int(m.Epoch))
			}
			if m.InstanceID != "" {
				id += " (instance " + m.InstanceID + ")"
			}
			table.Row(render.Escaped(g.ID), render.Escaped(id), render.Escaped(m.ClientID), render.Escaped(m.Host), epoch,
				r.assignedText(m))
		}
	}
	if !any {
		return dst
	}
	return table.Append(append(dst, '\n'), "")
}

func (r *Report) assignedText(m state.Member) string {
	var parts []string
	for _, a := range m.Assigned {
		var numbers []string
		for _, p := range a.Partitions {
			numbers = append(numbers, strconv.Itoa(int(p)))
		}
		parts = append(parts, render.Escaped(r.topicOf(a))+": "+strings.Join(numbers, ","))
	}
	return orDash(strings.Join(parts, "; "))
}

// topicOf is the name of a topic, or its id where nobody tells the name.
func (r *Report) topicOf(a state.Assigned) string {
	if a.Topic != "" {
		return a.Topic
	}
	if name := r.topicNames[a.TopicID]; name != "" {
		return name
	}
	return a.TopicID.String()
}
