// Functions on addresses and ranges of addresses.

extension Interpreter {
    /// Calls a function on addresses; nil if it does not accept values of these types.
    mutating func callAddress(
        _ function: CELFunction, _ arguments: [CELValue]
    ) throws(EvaluationError) -> CELValue? {
        for case .string(let text) in arguments {
            try charge(ExpressionLimits.steps(octets: text.utf8.count))
        }
        switch (function, arguments.first, arguments.dropFirst().first) {
        case (.ip, .string(let text)?, nil): return .ip(try Self.address(text))
        case (.ip, .cidr(let network)?, nil): return .ip(network.address)
        case (.cidr, .string(let text)?, nil): return .cidr(try Self.network(text))
        case (.isIP, .string(let text)?, nil): return .bool(CELAddress(text) != nil)
        case (.isCIDR, .string(let text)?, nil): return .bool(CELNetwork(text) != nil)
        case (.isCanonical, .string(let text)?, nil):
            return .bool(sameCodePoints(try Self.address(text).description, text))
        case (_, .ip(let address)?, nil): return Self.property(function, address)
        case (.masked, .cidr(let network)?, nil): return .cidr(network.masked)
        case (.prefixLength, .cidr(let network)?, nil): return .int(Int64(network.prefixLength))
        case (.containsIP, .cidr(let network)?, .ip(let address)?):
            return .bool(network.contains(address))
        case (.containsIP, .cidr(let network)?, .string(let text)?):
            return .bool(network.contains(try Self.address(text)))
        case (.containsCIDR, .cidr(let network)?, .cidr(let other)?):
            return .bool(network.contains(other))
        case (.containsCIDR, .cidr(let network)?, .string(let text)?):
            return .bool(network.contains(try Self.network(text)))
        default: return nil
        }
    }

    private static func property(_ function: CELFunction, _ address: CELAddress) -> CELValue? {
        switch function {
        case .family: .int(address.family)
        case .isUnspecified: .bool(address.isUnspecified)
        case .isLoopback: .bool(address.isLoopback)
        case .isLinkLocalMulticast: .bool(address.isLinkLocalMulticast)
        case .isLinkLocalUnicast: .bool(address.isLinkLocalUnicast)
        case .isGlobalUnicast: .bool(address.isGlobalUnicast)
        default: nil
        }
    }

    /// A text that is neither would match no list of ranges, and the author would not learn why.
    static func requireAddress(_ text: String) throws(EvaluationError) {
        guard CELAddress(text) == nil, CELNetwork(text) == nil else { return }
        throw EvaluationError(
            .invalidArgument,
            "neither an IP address nor a range of IP addresses, as the list has them")
    }

    private static func address(_ text: String) throws(EvaluationError) -> CELAddress {
        guard let address = CELAddress(text) else {
            throw EvaluationError(.invalidArgument, "not an IP address")
        }
        return address
    }

    private static func network(_ text: String) throws(EvaluationError) -> CELNetwork {
        guard let network = CELNetwork(text) else {
            throw EvaluationError(.invalidArgument, "not a range of IP addresses in CIDR notation")
        }
        return network
    }
}
