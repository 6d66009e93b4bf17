// The addresses of this machine's interfaces.

import Glibc

enum LocalAddresses {
    /// In numeric form, without link-local addresses.
    static func all() -> [String] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var found: [String] = []
        var next = list
        while let entry = next {
            next = entry.pointee.ifa_next
            guard let address = entry.pointee.ifa_addr,
                entry.pointee.ifa_flags & UInt32(IFF_UP) != 0
            else { continue }
            let family = Int32(address.pointee.sa_family)
            guard family == AF_INET || family == AF_INET6 else { continue }
            let length =
                family == AF_INET ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
            var name = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            guard
                getnameinfo(
                    address, socklen_t(length), &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST
                ) == 0
            else {
                continue
            }
            let text = String(
                decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if !text.contains("%"), !found.contains(text) { found.append(text) }
        }
        return found
    }
}
