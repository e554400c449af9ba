-- Brings LEASES_MS: for so much longer than the lease that ends last the leases' key lives.
local LEASES_MS = 3600000
