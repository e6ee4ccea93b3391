// Package extract gets snapshots out of the memory of a dead machine: out of the regions (package
// panicregion) that stand in a dump.
//
//	Find     one pass over the dump: heads and list pages by their magic, at page starts; or
//	         those of a frames file, without a search
//	Region   one region, its bytes read by its frames
//	split    the records of a region, cut into tasks
//	Collate  an ordinary file of these
//
// A dump is data that nobody vouches for. What is whole comes out, and what is not is named.
// Memory is for a constant, the symbols, some bytes for each thread, and the largest
// process's records: never for all records, and never for what a damaged word claims.
package extract
