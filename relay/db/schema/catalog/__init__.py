"""Tables of listings, publications, dependencies and advisories."""

from relay.db.schema.catalog import advisory as advisory
from relay.db.schema.catalog import dependency as dependency
from relay.db.schema.catalog import listing as listing
from relay.db.schema.catalog import publication as publication
