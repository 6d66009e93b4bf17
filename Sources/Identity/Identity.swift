// Placeholder until the first file of the module lands.
import JWTKit
import AsyncHTTPClient
