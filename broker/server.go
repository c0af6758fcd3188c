package broker

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"kseg/format"
)

// Server is what a server.properties says of a node, as far as its start goes by it.
type Server struct {
	NodeID *int32   // node.id, or broker.id; nil if it says neither
	Roles  []string // process.roles
	// LogDirs are those of log.dirs, or log.dir if that is not there, each once; Default: it says neither, and they are
	// Kafka's default. MetadataDir is where
	// the metadata log lies.
	LogDirs     []string
	Default     bool
	MetadataDir string
	// Refused says why no broker starts with the log directories (ConfigException); "" if it does.
	Refused string
	// Voters are the nodes of controller.quorum.voters; none if the quorum is dynamic (KIP-853). Alone: the node looks for
	// other controllers at its own addresses only (controller.quorum.bootstrap.servers).
	Voters []int32
	Alone  bool
}

// ParseServer takes what a start goes by out of a server.properties.
func ParseServer(properties []format.Property) *Server {
	values := map[string]string{}
	for _, p := range properties {
		values[p.Key] = strings.TrimSpace(p.Value)
	}
	s := &Server{Roles: format.SplitList(values["process.roles"])}
	s.logDirs(values)
	for _, key := range []string{"node.id", "broker.id"} {
		if n, err := strconv.ParseInt(values[key], 10, 32); err == nil && s.NodeID == nil {
			id := int32(n)
			s.NodeID = &id
		}
	}
	if s.MetadataDir = values["metadata.log.dir"]; s.MetadataDir == "" {
		if len(s.LogDirs) > 0 {
			s.MetadataDir = s.LogDirs[0]
		}
		if _, given := values["metadata.log.dir"]; given {
			s.Refused = cmp.Or(s.Refused, "metadata.log.dir is empty")
		}
	}
	for _, voter := range format.SplitList(values["controller.quorum.voters"]) {
		id, _, _ := strings.Cut(voter, "@")
		if n, err := strconv.ParseInt(id, 10, 32); err == nil {
			s.Voters = append(s.Voters, int32(n))
		}
	}
	asked := format.SplitList(values["controller.quorum.bootstrap.servers"])
	s.Alone = len(asked) > 0 && !slices.ContainsFunc(asked, func(address string) bool {
		return !slices.ContainsFunc(format.SplitList(values["listeners"]+","+values["advertised.listeners"]),
			func(own string) bool { return strings.HasSuffix(own, "://"+address) })
	})
	return s
}

// logDirs takes log.dirs, or log.dir if there is none. An empty item is refused in both, also in the one that is not
// used.
func (s *Server) logDirs(values map[string]string) {
	used := ""
	for _, key := range []string{"log.dirs", "log.dir"} {
		value, given := values[key]
		if !given {
			continue
		}
		used = cmp.Or(used, key)
		for item := range strings.SplitSeq(value, ",") {
			item = strings.TrimSpace(item)
			switch {
			case item == "" && s.Refused == "":
				s.Refused = key + " is " + strconv.Quote(value) + ", and no item of it may be empty"
			case item != "" && used == key && !slices.Contains(s.LogDirs, item):
				s.LogDirs = append(s.LogDirs, item)
			}
		}
	}
	if used == "" {
		s.LogDirs, s.Default = []string{"/tmp/kafka-logs"}, true
	}
}

// node is NodeID; nil for no server.properties.
func (s *Server) node() *int32 {
	if s == nil {
		return nil
	}
	return s.NodeID
}
