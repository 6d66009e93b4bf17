// Placeholder until the first file of the module lands.
import Hummingbird
import HummingbirdTLS
import Mustache
