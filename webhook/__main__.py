"""`python -m webhook` is `rdma-webhook`."""

import sys

from webhook.cli import main

sys.exit(main())
