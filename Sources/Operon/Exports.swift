// Types that appear in the public interface: priorities, conditions, errors, graph files.
@_exported public import OperonModel
