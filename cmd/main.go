// Package cmd is the command line of kseg: flags become options, one call does the work, and its error becomes the exit
// code. Each verb has one file with an options struct, its AddFlags, a newXCommand and one function that runs it;
// version.go is the shortest example. All output goes through Env, and exit.go is the only place that knows what a code
// means.
package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"kseg/logdir"
)

// fileTooLarge is SIGXFSZ, which nobody sends on Windows.
const fileTooLarge = syscall.Signal(25)

// Main runs the command line and returns the exit code. A panic that logdir.Guard did not catch where it spoils one
// file is caught here: one sentence and exit code 3, never a stack trace. After an interrupt it returns soon, whatever
// the verb waits for or computes, but for one that writes files.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	env := newEnv(stdin, stdout, stderr)
	logdir.Begin()

	// With these ignored a closed pipe or a limit on the size of files is a write error like any other, and exit.go
	// decides what it means.
	signal.Ignore(syscall.SIGPIPE, fileTooLarge)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first interrupt asks for an end; a second one finds the default handling again and ends the process at once.
	context.AfterFunc(ctx, stop)

	root := newRootCommand(env)
	root.SetArgs(args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		env.addCompletions(root)
	}
	done := make(chan int, 1)
	verbs.Go(func() { done <- env.run(ctx, root) })
	select {
	case code := <-done:
		return code
	case <-ctx.Done():
		return env.interrupt(done)
	}
}

func (env *Env) run(ctx context.Context, root *cobra.Command) (code int) {
	defer env.catch(&code)
	ran, err := root.ExecuteContextC(ctx)
	return env.finish(ran, err, ctx.Err() != nil)
}

// catch, deferred, turns a panic of this goroutine into a sentence and an exit code.
func (env *Env) catch(code *int) {
	fault := recover()
	if fault == nil {
		return
	}
	env.Stdout.Flush()
	env.notef("internal error: %v. This is a fault of kseg, not of your files; please report it with the command line.",
		fault)
	*code = codeIncomplete
}

// Commands returns the command tree for the generators of docs/; running it prints nothing.
func Commands() *cobra.Command { return newRootCommand(newEnv(nil, io.Discard, io.Discard)) }

// newRootCommand lists the verbs.
func newRootCommand(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "kseg",
		Short: "Read what a Kafka broker left on disk",
		Long: `kseg reads Kafka log segments, indexes, snapshots and checkpoints: one file, a partition directory or a
whole log directory. It needs no broker, opens everything read-only and writes nothing beside its inputs.`,
		Example: `  kseg dump orders-0/00000000000000000000.log      # a line a batch
  kseg dump --records orders-0                     # every record of a partition
  kseg help exit-codes                             # what scripts rely on`,
		SilenceUsage:     true,
		SilenceErrors:    true,
		Version:          versionLine(),
		Args:             unknownCommand,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { env.foldFor(cmd) },
		RunE: func(cmd *cobra.Command, args []string) error {
			env.showHelp(cmd, env.Stderr)
			return usageErrorf("no command given")
		},
	}
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { env.showHelp(cmd, env.Stdout) })
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version and exit")

	root.AddCommand(
		newDumpCommand(env),
		newExplainCommand(env),
		newVerifyCommand(env),
		newLsCommand(env),
		newRetentionCommand(env),
		newGroupsCommand(env),
		newTxnCommand(env),
		newMetadataCommand(env),
		newCompareCommand(env),
		newPredictCommand(env),
		newCompactionCommand(env),
		newSalvageCommand(env),
		newLookupCommand(env),
		newDensityCommand(env),
		newReportCommand(env),
		newCompletionCommand(env),
		newVersionCommand(env),
	)
	env.defaultOperands(root)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newTopicCommands()...)
	root.SetHelpCommand(newHelpCommand(env))
	return root
}
