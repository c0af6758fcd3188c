package metadata

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kseg/render"
	"kseg/state"
)

// fields are what is shown of a thing: what it says, and of a topic how many partitions it has and on how many brokers
// each.
func fields(t state.Thing) []state.Field {
	list := t.Fields()
	if topic, ok := t.(*state.Topic); ok {
		replicas := 0
		for _, p := range topic.Partitions {
			replicas = max(replicas, len(p.Replicas))
		}
		list = append(list, state.Field{Name: "partitions", Value: int64(len(topic.Partitions))},
			state.Field{Name: "replication_factor", Value: int64(replicas)})
	}
	return list
}

// cell is a value as text.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		return render.Escaped(v)
	case state.Millis:
		if v == render.NoTimestamp {
			return "-"
		}
		return render.Instant(int64(v))
	case []int32:
		return orDash(numbers(v))
	case []string:
		return orDash(render.Escaped(strings.Join(v, ",")))
	case [][]state.Field:
		var parts []string
		for _, list := range v {
			var words []string
			for _, f := range list {
				words = append(words, cell(f.Value))
			}
			parts = append(parts, strings.Join(words, " "))
		}
		return orDash(strings.Join(parts, ", "))
	}
	return render.Escaped(fmt.Sprint(v))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func numbers(list []int32) string {
	var texts []string
	for _, n := range list {
		texts = append(texts, strconv.Itoa(int(n)))
	}
	return strings.Join(texts, ",")
}

// from says which record a thing comes from.
func from(o state.Origin) string {
	if o.Snapshot != "" {
		return "snapshot"
	}
	return "@" + strconv.FormatInt(o.Offset, 10)
}

// section is a table of the text output.
type section struct {
	kind    state.ThingKind
	title   string
	columns []string // names of fields, or of what special makes
	right   string   // the alignment of the columns, as render.NewColumns takes it
}

// sections are in the order in which they are shown; partitions only where they are asked for, or in trouble.
var sections = []section{
	{state.BrokerThing, "brokers", []string{"broker_id", "state", "listeners", "rack", "broker_epoch", "log_dirs"},
		"rlwlrl"},
	{state.ControllerThing, "controllers", []string{"controller_id", "listeners", "incarnation_id"}, "rwl"},
	{state.FeatureThing, "features", []string{"name", "feature_level"}, "lr"},
	{state.TopicThing, "topics", []string{"name", "partitions", "replication_factor", "topic_id"}, "nrrl"},
	{state.PartitionThing, "partitions", []string{"partition", "state", "leader", "leader_epoch", "replicas", "isr",
		"eligible_leader_replicas"}, "nwrrlll"},
	{state.ConfigThing, "configs", []string{"resource", "name", "value"}, "nlw"},
	{state.QuotaThing, "quotas", []string{"entity", "key", "value"}, "nlr"},
	{state.ACLThing, "ACLs", []string{"principal", "permission_type", "operation", "resource_type", "resource_name",
		"pattern_type", "host"}, "nlllnll"},
	{state.ScramThing, "SCRAM users", []string{"name", "mechanism", "iterations"}, "nlr"},
	{state.TokenThing, "delegation tokens", []string{"token_id", "owner", "renewers", "expiration_timestamp",
		"max_timestamp"}, "nnnll"},
	{state.ProducerThing, "producer ids", []string{"next_producer_id", "broker_id"}, "rr"},
}

var headings = map[string]string{
	"broker_id":                "broker",
	"broker_epoch":             "epoch",
	"log_dirs":                 "log directories",
	"controller_id":            "controller",
	"incarnation_id":           "incarnation",
	"feature_level":            "level",
	"replication_factor":       "replicas",
	"topic_id":                 "topic id",
	"leader_epoch":             "epoch",
	"eligible_leader_replicas": "ELR",
	"permission_type":          "permission",
	"resource_type":            "resource",
	"resource_name":            "name",
	"pattern_type":             "pattern",
	"token_id":                 "token",
	"expiration_timestamp":     "expires",
	"max_timestamp":            "until at most",
	"next_producer_id":         "next id",
	"isr":                      "ISR",
}

func heading(column string) string {
	if text, ok := headings[column]; ok {
		return text
	}
	return column
}

// textCell is a cell of a section.
func textCell(im *state.Image, t state.Thing, column string, theme render.Theme) string {
	switch t := t.(type) {
	case *state.Broker:
		if column == "state" {
			return brokerState(t, theme)
		}
		if column == "listeners" {
			return listeners(t.Endpoints)
		}
	case *state.Controller:
		if column == "listeners" {
			return listeners(t.Endpoints)
		}
	case *state.Partition:
		if column == "partition" {
			return render.Escaped(t.Title())
		}
		if column == "state" {
			return situation(im, t, theme)
		}
	case *state.Config:
		if column == "resource" {
			name, _ := strings.CutSuffix(t.Title(), " "+t.Name)
			return render.Escaped(name)
		}
		if column == "value" && t.Sensitive() {
			return theme.Dim("(hidden)")
		}
	case *state.Quota:
		if column == "entity" {
			name, _ := strings.CutSuffix(t.Title(), " "+t.Limit)
			return render.Escaped(name)
		}
	}
	for _, f := range fields(t) {
		if f.Name == column {
			return cell(f.Value)
		}
	}
	return ""
}

func brokerState(b *state.Broker, theme render.Theme) string {
	switch {
	case b.Fenced:
		return theme.Look("fenced")
	case b.InControlledShutdown:
		return theme.Look("shutting down")
	}
	return "unfenced"
}

func listeners(list []state.Endpoint) string {
	var texts []string
	for _, e := range list {
		texts = append(texts, e.String())
	}
	return render.Escaped(strings.Join(texts, " "))
}

// trouble says what is wrong with a partition, "" if nothing is. Missing replicas and leaders are nothing wrong where
// their brokers are fenced: so a cluster looks that was stopped.
func trouble(im *state.Image, p *state.Partition) string {
	down := 0
	for _, id := range p.Replicas {
		if b := im.Broker(id); b == nil || b.Fenced {
			down++
		}
	}
	switch {
	case p.RecoveringUncleanElected:
		return "recovering from an unclean election"
	case p.Leader < 0 && down < len(p.Replicas):
		return "no leader"
	case len(p.ISR) < len(p.Replicas)-down:
		return fmt.Sprintf("%d of %d in sync", len(p.ISR), len(p.Replicas))
	case len(p.Adding)+len(p.Removing) > 0:
		return "being reassigned"
	}
	return ""
}

// situation is trouble, or what else is to be seen of a partition.
func situation(im *state.Image, p *state.Partition, theme render.Theme) string {
	switch bad := trouble(im, p); {
	case bad != "":
		return theme.Bad(bad)
	case p.Leader < 0:
		return theme.Look("no leader: brokers fenced")
	case len(p.ISR) < len(p.Replicas):
		return theme.Look(fmt.Sprintf("%d of %d in sync: brokers fenced", len(p.ISR), len(p.Replicas)))
	}
	return "in sync"
}

// troubled are the partitions that something is wrong with, those without a leader first; stopped counts those whose
// brokers are all fenced.
func troubled(im *state.Image) (list []state.Thing, stopped int) {
	for _, t := range im.Things(state.PartitionThing) {
		p := t.(*state.Partition)
		switch {
		case trouble(im, p) != "":
			list = append(list, t)
		case p.Leader < 0:
			stopped++
		}
	}
	slices.SortStableFunc(list, func(a, b state.Thing) int {
		x, y := a.(*state.Partition), b.(*state.Partition)
		return cmp.Or(cmp.Compare(min(x.Leader, 0), min(y.Leader, 0)), cmp.Compare(len(x.ISR), len(y.ISR)))
	})
	return list, stopped
}
