import Testing
import PosternAPI

@Suite struct APIPlaceholder {
    @Test func builds() {}
}
