package format

import (
	"cmp"
	"strconv"
	"strings"
)

// MetaProperties is a meta.properties file, which names the broker, the cluster and the directory a log directory
// belongs to (Kafka's MetaProperties). Version 0 is of the ZooKeeper era.
type MetaProperties struct {
	Version        int32
	ClusterID      string // "" if absent
	NodeID         int32  // node.id, or broker.id in version 0
	HasNodeID      bool
	DirectoryID    UUID
	HasDirectoryID bool // since 3.7
	Properties     []Property
}

// Get returns the last property of that key.
func (m *MetaProperties) Get(key string) (Property, bool) {
	for i := len(m.Properties) - 1; i >= 0; i-- {
		if m.Properties[i].Key == key {
			return m.Properties[i], true
		}
	}
	return Property{}, false
}

// DecodeMetaProperties reads a meta.properties file as a broker does. The error is a *StateError; a broker does not
// start when it meets one. Properties holds what could be read all the same.
func DecodeMetaProperties(raw []byte) (MetaProperties, error) {
	var m MetaProperties
	var err error
	if m.Properties, err = DecodeProperties(raw); err != nil {
		return m, err
	}
	if p, ok := m.Get("version"); ok {
		version, ok := parseJavaInt([]byte(strings.TrimFunc(p.Value, func(r rune) bool { return r <= ' ' })), 32)
		if !ok {
			return m, p.fail("meta.properties version", ErrValue, "0 or 1")
		}
		if m.Version = int32(version); version < 0 || version > 1 {
			return m, p.fail("meta.properties version", ErrUnsupported, "0 or 1")
		}
	}
	if err := m.readNodeID(raw); err != nil {
		return m, err
	}
	cluster, ok := m.Get("cluster.id")
	m.ClusterID = cluster.Value
	if !ok && m.Version > 0 {
		return m, missingProperty("cluster.id", raw)
	}
	if p, ok := m.Get("directory.id"); ok {
		if m.DirectoryID, err = ParseUUID(p.Value); err != nil {
			return m, p.fail("directory.id", ErrValue, "22 characters of base64url")
		}
		m.HasDirectoryID = true
	}
	return m, nil
}

var metaPropertiesContent = Content{describe: (*describer).metaProperties, Row: "properties",
	Rows: func(raw []byte, row func([]Value) error) error {
		m, bad := DecodeMetaProperties(raw)
		values := make([]Value, len(m.Properties))
		for i, p := range m.Properties {
			values[i] = text(p.Key, jsonName(p.Key), p.Value)
		}
		return cmp.Or(row(values), bad)
	}}

// jsonName makes a JSON name of a property's key.
func jsonName(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(key))
}

// readNodeID reads node.id, which version 1 demands, or broker.id, which version 0 may lack.
func (m *MetaProperties) readNodeID(raw []byte) error {
	key := "node.id"
	if m.Version == 0 {
		key = "broker.id"
	}
	p, ok := m.Get(key)
	if !ok {
		if m.Version == 0 {
			return nil
		}
		return missingProperty(key, raw)
	}
	id, ok := parseJavaInt([]byte(p.Value), 32)
	if !ok {
		return p.fail(key, ErrValue, "an int32")
	}
	m.NodeID, m.HasNodeID = int32(id), true
	return nil
}

// fail makes the error of a property whose value Kafka does not take.
func (p Property) fail(what string, sentinel error, want string) *StateError {
	return &StateError{
		Cause: &Error{What: what, Pos: p.Pos, Want: want, Got: strconv.Quote(p.Value), Err: sentinel},
		Line:  p.Number, Throws: RuntimeException,
	}
}

// missingProperty makes the error of a property that should be there; its place is the end of the file.
func missingProperty(key string, raw []byte) *StateError {
	r := lineReader{raw: raw}
	for ok := true; ok; _, ok = r.next() {
	}
	return &StateError{Cause: &Error{What: key, Pos: int64(len(raw)), Want: "a value", Got: "none", Err: ErrValue},
		Line:   r.line,
		Throws: RuntimeException}
}
