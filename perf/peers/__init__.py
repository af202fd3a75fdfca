"""Other systems of replicated disks, run beside Drystone by their Debian packages."""
