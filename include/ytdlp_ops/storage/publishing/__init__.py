"""From verified formats to files where they belong: merged, named, moved and verified there."""
