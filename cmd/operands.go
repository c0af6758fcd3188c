package cmd

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kseg/format"
	"kseg/logdir"
	"kseg/state"
)

// brokerConfigFlag names a broker's server.properties.
const brokerConfigFlag = "broker-config"

// logDirsVariable is the environment variable that has the operands where none is given.
const logDirsVariable = "KAFKA_LOG_DIRS"

// defaultOperands lets the commands that take PATH... find the log directories themselves if none is given: in log.dirs
// of the server.properties that --broker-config names, else in KAFKA_LOG_DIRS.
func (env *Env) defaultOperands(root *cobra.Command) {
	for _, c := range root.Commands() {
		check, run := c.Args, c.RunE
		if check == nil || c.Flags().Lookup(brokerConfigFlag) == nil {
			continue
		}
		c.Args = func(c *cobra.Command, args []string) error {
			args, err := env.operands(c, args)
			if err != nil {
				return err
			}
			return check(c, args)
		}
		c.RunE = func(c *cobra.Command, args []string) error {
			args, err := env.operands(c, args)
			if err != nil {
				return err
			}
			return run(c, args)
		}
	}
}

// operands are those given, else the log directories that are known otherwise. The files of dump --files are operands
// too.
func (env *Env) operands(c *cobra.Command, args []string) ([]string, error) {
	if files := c.Flags().Lookup("files"); len(args) > 0 || files != nil && files.Changed {
		return args, nil
	}
	config := c.Flags().Lookup(brokerConfigFlag).Value.String()
	if config == "" {
		return format.SplitList(env.Getenv(logDirsVariable)), nil
	}
	properties, err := readProperties(config)
	if err != nil {
		return nil, err
	}
	dirs := logDirsOf(properties)
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%s: it has neither log.dirs nor log.dir; name the log directories", config)
	}
	return dirs, nil
}

// logDirsOf are the log directories of a broker: log.dirs, else log.dir, and metadata.log.dir where that is another
// one.
func logDirsOf(properties []format.Property) []string {
	values := map[string]string{}
	for _, p := range properties {
		values[p.Key] = p.Value
	}
	dirs := format.SplitList(values["log.dirs"])
	if _, given := values["log.dirs"]; !given {
		dirs = format.SplitList(values["log.dir"])
	}
	if meta := strings.TrimSpace(values["metadata.log.dir"]); meta != "" && !slices.Contains(dirs, meta) {
		dirs = append(dirs, meta)
	}
	return dirs
}

// given are the settings that flags say, and those of the server.properties of that name, if it is not "".
func given(overrides []state.Override, brokerConfig string) (g state.Given, err error) {
	g.Overrides = overrides
	if brokerConfig != "" {
		g.HasServer = true
		g.Server, err = readProperties(brokerConfig)
	}
	return g, err
}

func readProperties(path string) ([]format.Property, error) {
	set, err := logdir.Open([]string{path}, logdir.Options{})
	if err != nil {
		return nil, err
	}
	f := set.Operands[0].File
	switch {
	case f == nil && set.Operands[0].Err != nil:
		return nil, set.Operands[0].Err
	case f == nil || f.Kind() != format.KindUnknown:
		return nil, fmt.Errorf("%s: not the server.properties of a broker", path)
	}
	raw, err := f.ReadSmall()
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		return nil, fmt.Errorf("%s: not the server.properties of a broker: it is no text", path)
	}
	properties, err := format.DecodeProperties(raw)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return properties, err
}
