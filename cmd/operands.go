package cmd

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"kseg/broker"
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
	server := broker.ParseServer(properties)
	dirs := server.AllDirs()
	switch {
	case len(dirs) == 0:
		return nil, fmt.Errorf("%s: no broker starts with it: %s; name the log directories", config, server.Refused)
	case server.Default:
		return nil, fmt.Errorf("%s: it has neither log.dirs nor log.dir; name the log directories", config)
	}
	return dirs, nil
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
