"""Named measurements that more than one cause reasons from."""
