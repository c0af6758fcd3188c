package cmd

import "regexp"

// BesideABroker are command lines over whole log directories, of every verb and format; NEW is what is not there yet,
// TWIN a copy.
var BesideABroker = []string{
	"dump DIR", "dump --records DIR", "dump --records -o json DIR", "dump -o table DIR", "dump --tail 3 DIR",
	"dump --count DIR", "dump --kafka-compat DIR", "dump -o table --records --limit 500 DIR",
	"lookup --offset 30 DIR", "lookup --offset 30 -o json DIR", "lookup --sweep DIR", "lookup --sweep -o json DIR",
	"lookup --sweep --svg NEW.svg DIR", "lookup --timestamp -24h DIR", "density DIR", "density -o csv DIR",
	"density -o table --interval 1,4096 DIR", "retention DIR", "retention --plan DIR",
	"retention -o json DIR", "retention -o table DIR",
	"ls DIR", "ls -o csv DIR", "ls -o table DIR", "ls --by segment DIR", "ls --by codec DIR", "ls --by producer DIR",
	"ls --stats --records -o json DIR",
	"txn --all DIR", "txn --producers -o json DIR", "txn DIR", "txn -o table --all DIR",
	"groups DIR", "groups --history DIR", "groups -o json DIR", "groups -o csv DIR", "groups -o table DIR",
	"metadata DIR", "metadata --check DIR", "metadata -o json DIR", "metadata -o table DIR",
	"compare DIR TWIN", "compare --level records --state TWIN DIR", "compare --fingerprint DIR", "compare DIR DIR",
	"compare -o json --state DIR DIR",
	"compaction --topic-config cleanup.policy=compact DIR", "compaction --keys -o json DIR", "compaction -o table DIR",
	"predict DIR", "predict -o json --shutdown unclean DIR", "predict -o table --files DIR",
	"salvage --dry-run -o NEW DIR", "salvage -o NEW --output json DIR",
	"verify DIR", "verify --jobs 1 -o json DIR", "verify -o json --level headers DIR", "verify -o junit DIR",
	"verify -o table DIR", "verify --gentle DIR",
}

// NothingThere is said where there is nothing to check, or no offset to compare: with a code of its own, whatever a
// broker does.
var NothingThere = regexp.MustCompile(`no snapshot could be checked|nothing was compared|nothing to draw|` +
	`there is no (compacted|__consumer_offsets) partition`)
