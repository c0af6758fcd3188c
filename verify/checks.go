package verify

// checks are all there are, in the order in which they run.
var checks = []*Check{
	&checkBatches,
	&checkRecords,
	&checkOffsets,
	&checkEpochs,
	&checkProducers,
	&checkOffsetIndex,
	&checkTimeIndex,
	&checkTxnIndex,
	&checkSegments,
	&checkSnapshots,
	&checkEpochFile,
	&checkIdentity,
	&checkKRaft,
	&checkOdd,
	&checkDirs,
	&checkCheckpoints,
	&checkStart,
}

// Codes lists every code there is, in the order of the checks.
func Codes() []Code {
	var all []Code
	for _, c := range checks {
		all = append(all, c.Codes...)
	}
	return all
}

// Group is the group of checks that a code belongs to, "" if there is no such code.
func Group(name string) string {
	for _, c := range checks {
		for _, code := range c.Codes {
			if code.Name == name {
				return c.Group
			}
		}
	}
	return ""
}

// enabled are the checks that have something to find: not all of their codes are ignored.
func enabled(opts *Options) []*Check {
	var on []*Check
	for _, c := range checks {
		wanted := 0
		for _, code := range c.Codes {
			if !opts.Ignore[code.Name] {
				wanted++
			}
		}
		if wanted > 0 && c.Level <= opts.Level {
			on = append(on, c)
		}
	}
	return on
}
