package broker

import (
	"strconv"
	"strings"

	"kseg/format"
)

// Server is what a server.properties says of a node, as far as its start goes by it.
type Server struct {
	NodeID *int32   // node.id, or broker.id; nil if it says neither
	Roles  []string // process.roles
	// LogDirs are those of log.dirs, or log.dir, and MetadataDir is where the metadata log lies.
	LogDirs     []string
	MetadataDir string
	// Voters are the nodes of controller.quorum.voters; none if the quorum is dynamic (KIP-853).
	Voters []int32
}

// ParseServer takes what a start goes by out of a server.properties.
func ParseServer(properties []format.Property) *Server {
	values := map[string]string{}
	for _, p := range properties {
		values[p.Key] = strings.TrimSpace(p.Value)
	}
	s := &Server{Roles: format.SplitList(values["process.roles"]), LogDirs: format.SplitList(values["log.dirs"])}
	for _, key := range []string{"node.id", "broker.id"} {
		if n, err := strconv.ParseInt(values[key], 10, 32); err == nil && s.NodeID == nil {
			id := int32(n)
			s.NodeID = &id
		}
	}
	if s.LogDirs == nil {
		s.LogDirs = format.SplitList(values["log.dir"])
	}
	if s.MetadataDir = values["metadata.log.dir"]; s.MetadataDir == "" && len(s.LogDirs) > 0 {
		s.MetadataDir = s.LogDirs[0]
	}
	for _, voter := range format.SplitList(values["controller.quorum.voters"]) {
		id, _, _ := strings.Cut(voter, "@")
		if n, err := strconv.ParseInt(id, 10, 32); err == nil {
			s.Voters = append(s.Voters, int32(n))
		}
	}
	return s
}

// node is NodeID; nil for no server.properties.
func (s *Server) node() *int32 {
	if s == nil {
		return nil
	}
	return s.NodeID
}
