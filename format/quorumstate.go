package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// QuorumState is the quorum-state file of a KRaft metadata log: what the node last knew of the election
// (FileQuorumStateStore, KIP-595 and KIP-853). −1 stands for nobody.
type QuorumState struct {
	DataVersion      int16
	ClusterID        string // version 0 only, and empty there
	LeaderID         int32
	LeaderEpoch      int32
	VotedID          int32
	VotedDirectoryID UUID    // version 1 only
	AppliedOffset    int64   // version 0 only, always 0
	Voters           []int32 // version 0 only
}

// DecodeQuorumState reads the first line of a quorum-state file, as a broker does: a JSON object whose data_version
// says which other fields must be there. The error is a *StateError; a broker does not start when it meets one.
func DecodeQuorumState(raw []byte) (QuorumState, error) {
	var q QuorumState
	if err := checkUTF8("quorum-state", raw); err != nil {
		return q, err
	}
	l, ok := (&lineReader{raw: raw}).next()
	if !ok {
		return q, l.fail("quorum-state", 0, IOException, ErrTruncated, "a line of JSON", nil)
	}
	o := jsonObject{line: l}
	if err := o.read("quorum-state"); err != nil {
		return q, err
	}
	version, ok := o.fields["data_version"]
	if !ok {
		return q, l.fail("data_version", 0, IOException, ErrValue, "0 or 1", nil)
	}
	if q.DataVersion = jsonShort(version); q.DataVersion < 0 || q.DataVersion > 1 {
		return q, l.fail("data_version", 0, IllegalStateException, ErrUnsupported, "0 or 1", version)
	}
	o.required = true
	leader, _ := o.integer("leaderId", math.MinInt32, math.MaxInt32)
	epoch, _ := o.integer("leaderEpoch", math.MinInt32, math.MaxInt32)
	voted, _ := o.integer("votedId", math.MinInt32, math.MaxInt32)
	q.LeaderID, q.LeaderEpoch, q.VotedID = int32(leader), int32(epoch), int32(voted)
	o.required = q.DataVersion == 0
	q.ClusterID = o.text("clusterId")
	q.AppliedOffset, _ = o.integer("appliedOffset", math.MinInt64, math.MaxInt64)
	q.Voters = o.voters()
	o.required = q.DataVersion == 1
	q.VotedDirectoryID = o.uuid("votedDirectoryId")
	return q, o.err.orNil()
}

var quorumStateContent = Content{describe: (*describer).quorumState, Row: "properties",
	Rows: func(raw []byte, row func([]Value) error) error {
		q, err := DecodeQuorumState(raw)
		if err != nil {
			return err
		}
		values := []Value{number("dataVersion", "data_version", q.DataVersion), number("leaderId", "leader_id", q.LeaderID),
			number("leaderEpoch", "leader_epoch", q.LeaderEpoch), number("votedId", "voted_id", q.VotedID)}
		if q.DataVersion > 0 {
			return row(append(values, text("votedDirectoryId", "voted_directory_id", q.VotedDirectoryID.String())))
		}
		return row(append(values, text("clusterId", "cluster_id", q.ClusterID),
			number("appliedOffset", "applied_offset", q.AppliedOffset),
			text("currentVoters", "current_voters", strings.Trim(strings.ReplaceAll(fmt.Sprint(q.Voters), " ", ","), "[]"))))
	}}

// jsonObject reads the fields of a JSON object of one line. It is sticky: after the first failure every read answers
// zero.
type jsonObject struct {
	line     textLine
	fields   map[string]json.RawMessage
	required bool // whether fields that are read must be there
	err      *StateError
}

// read parses the object.
func (o *jsonObject) read(what string) error {
	dec := json.NewDecoder(bytes.NewReader(o.line.text))
	if err := dec.Decode(&o.fields); err != nil {
		cause := jsonError(what, err)
		cause.Pos += o.line.Pos
		return &StateError{Cause: cause, Line: o.line.Number, Throws: IOException}
	}
	if o.fields == nil {
		return o.line.fail(what, 0, IOException, ErrValue, "a JSON object", o.line.text)
	}
	return nil
}

// field returns the raw value of a field, and whether it is there.
func (o *jsonObject) field(name string) (json.RawMessage, bool) {
	value, ok := o.fields[name]
	if !ok && o.required && o.err == nil {
		o.err = o.line.fail(name, 0, RuntimeException, ErrValue, "a value", nil)
	}
	return value, ok && o.err == nil
}

func (o *jsonObject) integer(name string, least, most int64) (int64, bool) {
	value, ok := o.field(name)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || v < least || v > most {
		o.err = o.line.fail(name, 0, NumberFormatException, ErrValue,
			"an integer from "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10), value)
		return 0, false
	}
	return v, true
}

func (o *jsonObject) text(name string) string {
	value, ok := o.field(name)
	if !ok {
		return ""
	}
	var s *string
	if err := json.Unmarshal(value, &s); err != nil || s == nil {
		o.err = o.line.fail(name, 0, RuntimeException, ErrValue, "a string", value)
		return ""
	}
	return *s
}

func (o *jsonObject) uuid(name string) UUID {
	if _, ok := o.field(name); !ok {
		return UUID{}
	}
	text := o.text(name)
	id, err := ParseUUID(text)
	if err != nil && o.err == nil {
		o.err = o.line.fail(name, 0, IllegalArgumentException, ErrValue, "22 characters of base64url", []byte(text))
	}
	return id
}

// voters reads currentVoters, a list of objects with a voterId.
func (o *jsonObject) voters() []int32 {
	const name = "currentVoters"
	value, ok := o.field(name)
	if !ok {
		return nil
	}
	if string(value) == "null" {
		o.err = o.line.fail(name, 0, NullPointerException, ErrValue, "a list", value)
		return nil
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		o.err = o.line.fail(name, 0, RuntimeException, ErrValue, "a list of objects with a voterId", value)
		return nil
	}
	ids := make([]int32, 0, len(list))
	for _, fields := range list {
		voter := jsonObject{line: o.line, fields: fields, required: true}
		id, _ := voter.integer("voterId", math.MinInt32, math.MaxInt32)
		if voter.err != nil {
			o.err = voter.err
			return nil
		}
		ids = append(ids, int32(id))
	}
	return ids
}

// jsonShort is Jackson's JsonNode.shortValue: numbers lose what does not fit, anything else is 0.
func jsonShort(value json.RawMessage) int16 {
	if v, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return int16(v)
	}
	v, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return 0
	}
	return int16(int32(max(math.MinInt32, min(math.MaxInt32, v))))
}

// jsonError turns an error of encoding/json into one with a position in the text that was read.
func jsonError(what string, err error) *Error {
	e := &Error{What: what, Want: "JSON", Got: err.Error(), Err: ErrValue}
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		e.Pos = max(0, syntax.Offset-1)
	case errors.As(err, &typed):
		e.Pos = max(0, typed.Offset-1)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Err = ErrTruncated
	}
	return e
}
