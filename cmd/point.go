package cmd

import (
	"strconv"
	"strings"
	"time"

	"kseg/render"
	"kseg/state"
)

// firstTimeMs is the number from which on one without a unit is a time: no log of an internal topic has so many
// records, and no Kafka was there before 1973.
const firstTimeMs = 100_000_000_000

// parsePoint reads an offset, or a time as kseg help times has it; numbers from 10^11 on are epoch milliseconds. "end"
// is the log's end.
func parsePoint(flag, text string, now time.Time) (state.Point, error) {
	if text == "end" {
		return state.Point{}, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n < firstTimeMs {
		if n < 0 {
			return state.Point{}, usageErrorf("%s: %q is no offset", flag, text)
		}
		return state.Point{Given: true, Offset: n}, nil
	}
	ms, err := render.ParseTime(text, now)
	if err != nil {
		return state.Point{}, usageErrorf("%s: %q is neither an offset nor a time: give a number, RFC 3339 "+
			"(2023-11-14T22:13:20Z) or a distance from now (-2h)", flag, text)
	}
	return state.Point{Given: true, IsTime: true, TimeMs: ms}, nil
}

// parseSpan reads FROM,TO.
func parseSpan(flag, text string, now time.Time) (from, to state.Point, err error) {
	first, second, ok := strings.Cut(text, ",")
	if !ok {
		return from, to, usageErrorf("%s takes FROM,TO: two offsets or times; end is the log's end", flag)
	}
	if from, err = parsePoint(flag, first, now); err == nil {
		to, err = parsePoint(flag, second, now)
	}
	return from, to, err
}
