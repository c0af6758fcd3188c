package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"kseg/logdir"
	"kseg/rebuild"
	"kseg/render"
	"kseg/verify"
)

// rebuildOptions are the flags of kseg verify that write indexes.
type rebuildOptions struct {
	Dir       string
	Interval  *int64
	Snapshots bool
}

// AddFlags defines the flags of the group Rebuild.
func (o *rebuildOptions) AddFlags(fs *pflag.FlagSet) {
	addGroup(fs, "Rebuild", func(fs *pflag.FlagSet) {
		fs.StringVar(&o.Dir, "rebuild", "", "check nothing, but write fresh indexes into this `DIR`")
		fs.Var(&optionalSize{&o.Interval}, "interval", "their index.interval.bytes (default: the topic's own, else 4096)")
		fs.BoolVar(&o.Snapshots, "snapshots", false, "also write the producer snapshots that recovery takes")
	})
}

// check refuses flags that do not go together: a check that was asked for and is not run would be taken for passed.
func (o *rebuildOptions) check(fs *pflag.FlagSet) error {
	if fs.Changed("rebuild") && o.Dir == "" {
		return usageErrorf("--rebuild takes the name of a folder; is a variable unset?")
	}
	alone := []string{"interval", "snapshots"}
	if o.Dir != "" {
		alone = []string{"level", "ignore", "fail-fast", "max-findings", "max-message-bytes"}
	}
	for _, name := range alone {
		if !fs.Changed(name) {
			continue
		}
		if o.Dir == "" {
			return usageErrorf("--%s goes with --rebuild", name)
		}
		return usageErrorf("--%s is for checks, and --rebuild runs none; run verify twice", name)
	}
	return nil
}

func runRebuild(ctx context.Context, env *Env, o *verifyOptions, args []string) error {
	if o.output.Format == "junit" {
		return usageErrorf("-o junit is for checks, and --rebuild runs none")
	}
	now, err := o.clock.now(env)
	if err != nil {
		return err
	}
	set, err := o.operands.open(args, &o.work)
	if err != nil {
		return err
	}
	report := o.rebuildReport(env)
	bar := o.output.progress(env, totalBytes(set))
	start := env.Now()
	if _, err := env.holdFiles(); err != nil {
		return err
	}
	summary, err := rebuild.Run(ctx, set, rebuild.Options{Dir: o.rebuild.Dir, Interval: o.rebuild.Interval,
		Snapshots: o.rebuild.Snapshots, Jobs: o.work.Jobs, MaxBatchBytes: o.work.MaxBatchBytes, Now: now,
		Emit: report.Segment, Progress: bar.Add})
	switch {
	case errors.Is(err, logdir.ErrUsage):
		return &usageError{err}
	case err != nil && summary.Segments == 0:
		return err
	}
	bar.Clear()
	if closeErr := report.Close(&summary); closeErr != nil {
		return errors.Join(err, closeErr)
	}
	for _, text := range summary.NotDone {
		env.notef("%s", render.Escaped(text))
	}
	if err != nil {
		return err
	}
	if !o.output.Quiet || verify.RebuildVerdict(&summary) != verify.Clean {
		word, rest, _ := strings.Cut(verify.RebuildVerdictText(&summary, o.rebuild.Dir), ":")
		fmt.Fprintf(env.Stderr, "%s; %s\n", o.paintVerdict(env, verify.RebuildVerdict(&summary), word)+":"+rest,
			render.Duration(env.Now().Sub(start).Milliseconds()))
	}
	least, fails := verify.ParseSeverity(o.failOn.Severity)
	return result(fails && verify.RebuildCount(&summary, least) > 0, incompleteIf(verify.RebuildVerdict(&summary)))
}

func (o *verifyOptions) rebuildReport(env *Env) verify.RebuildReport {
	switch o.output.Format {
	case "json":
		return verify.NewRebuildJSON(env.Stdout)
	case "table":
		return verify.NewRebuildTable(env.Stdout, o.output.theme(env), o.output.Quiet)
	}
	return verify.NewRebuildText(env.Stdout, o.output.theme(env), env.Width, o.output.Quiet)
}
