package cmd

import (
	"errors"
	"path"

	"github.com/spf13/pflag"

	"kseg/format"
	"kseg/logdir"
	"kseg/render"
)

// clusterOptions find the operands of verbs that look at a cluster, whose filters choose what is shown and not what is
// read.
type clusterOptions struct {
	BrokerConfig string // a server.properties; see operands.go
	Partitions   []int32
	workOptions
}

// AddFlags defines --broker-config, --partition and the flags of the group Work.
func (o *clusterOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "Operands", func(fs *pflag.FlagSet) {
		fs.StringVar(&o.BrokerConfig, brokerConfigFlag, "", "the broker's `FILE` server.properties: its log.dirs are read "+
			"where no PATH is given")
	})
	addGroup(fs, "What to print", func(fs *pflag.FlagSet) {
		fs.VarP(&numberList[int32]{&o.Partitions}, "partition", "", "only what belongs to partitions with these numbers")
	})
	o.workOptions.AddFlags(fs)
}

// open finds what the paths lead to.
func (o *clusterOptions) open(paths []string) (*logdir.Set, *logdir.Gentle, error) {
	gentle := newGentle(o.Gentle)
	set, err := logdir.Open(paths, logdir.Options{Gentle: gentle, Unlisted: true})
	return set, gentle, err
}

// problems prints what could not be folded; a batch that is too large to be read is no damage, and the error is of it.
func (env *Env) problems(problems []error) (incomplete error) {
	for _, problem := range problems {
		env.notef("%s", render.Escaped(problem.Error()))
		if errors.Is(problem, format.ErrTooLarge) {
			incomplete = errIncomplete
		}
	}
	return incomplete
}

// checkGlobs reports the first that is no pattern.
func checkGlobs(flag string, globs []string) error {
	for _, glob := range globs {
		if _, err := path.Match(glob, ""); err != nil {
			return usageErrorf("%s %q is not a pattern: %w; * stands for any text, ? for a character, [a-z] for one of several",
				flag, glob, err)
		}
	}
	return nil
}
