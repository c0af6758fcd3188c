package cmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// needPaths is the Args of a verb that reads files or directories.
func needPaths(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageErrorf("no PATH given: name a file, a partition directory or a log directory, or set %s", logDirsVariable)
	}
	return nil
}

// noOperands is the Args of a command that takes none.
func noOperands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageErrorf("%s takes no operand, but %q was given", cmd.Name(), args[0])
	}
	return nil
}

// unknownCommand is the Args of the root, which is asked only if no command has the name of its first operand.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if near := nearest(args[0], names); near != "" {
		return usageErrorf("there is no command %q; did you mean %q?", args[0], near)
	}
	return usageErrorf("there is no command %q; the commands are %s", args[0], strings.Join(names, ", "))
}

// flagError words what pflag says of a flag it does not know or cannot read, and names the near one.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bad *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return usageErrorf("there is no flag -%s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if near := nearest(name, flagNames(cmd)); near != "" {
			return usageErrorf("there is no flag --%s; did you mean --%s?", name, near)
		}
		return usageErrorf("there is no flag --%s", name)
	case errors.As(err, &bad):
		return usageErrorf("--%s: %w", bad.GetFlag().Name, numberError(bad))
	case errors.As(err, &missing):
		return usageErrorf("--%s needs a value: %s", missing.GetFlag().Name, missing.GetFlag().Value.Type())
	}
	return &usageError{err}
}

// numberError turns the standard library's number errors into a sentence; our own values word theirs.
func numberError(bad *pflag.InvalidValueError) error {
	cause := errors.Unwrap(bad)
	if text := cause.Error(); !strings.HasPrefix(text, "strconv.") {
		return cause
	}
	kind := "a number"
	if strings.HasPrefix(bad.GetFlag().Value.Type(), "bool") {
		kind = "true or false"
	}
	return fmt.Errorf("%q is not %s", bad.GetValue(), kind)
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// nearest returns the candidate that a slip of the finger most likely meant, or "": one that begins with the name, or
// differs in at most a third of its letters.
func nearest(name string, candidates []string) string {
	best, bestDistance := "", len(name)/3+2
	for _, candidate := range candidates {
		distance := editDistance(name, candidate)
		if len(name) > 1 && strings.HasPrefix(candidate, name) {
			distance = 1
		}
		if distance < bestDistance {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// editDistance counts the insertions, deletions and substitutions between a and b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
