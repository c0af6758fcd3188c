package cmd

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
)

func TestExitCode(t *testing.T) {
	unreadable := errors.New("cannot read x.log")
	pipe := fmt.Errorf("the output is incomplete: %w", syscall.EPIPE)
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"nothing", nil, 0},
		{"found", errFound, 1},
		{"usage", usageErrorf("no PATH given"), 2},
		{"wrapped usage", fmt.Errorf("dump: %w", usageErrorf("x")), 2},
		{"unreadable", unreadable, 3},
		{"said before", errIncomplete, 3},
		{"interrupted", context.Canceled, 130},
		{"3 outranks 1", errors.Join(errFound, unreadable), 3},
		{"3 outranks 1 in the other order", errors.Join(unreadable, errFound), 3},
		{"interrupt outranks all", errors.Join(errFound, unreadable, context.Canceled), 130},
		{"reader gone", pipe, 0},
		{"reader gone after a finding", errors.Join(errFound, pipe), 1},
		{"reader gone after a failure", errors.Join(unreadable, pipe), 3},
		{"nested", errors.Join(errors.Join(errFound), errors.Join(nil, errIncomplete)), 3},
		{"result of nothing", result(false, nil), 0},
		{"result found", result(true, nil), 1},
		{"result found and incomplete", result(true, unreadable), 3},
	}
	for _, test := range tests {
		if got := exitCode(test.err); got != test.want {
			t.Errorf("%s: exit code %d, want %d", test.name, got, test.want)
		}
	}
}
