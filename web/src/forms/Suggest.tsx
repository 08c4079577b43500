/** A line of text with suggestions below it. */
import { AutoComplete, type AutoCompleteProps } from 'antd'

export function Suggest(props: AutoCompleteProps) {
  // It is a search field to the browser, which empties those on Escape; people only want to close the suggestions.
  return <AutoComplete {...props} onKeyDown={(event) => event.key === 'Escape' && event.preventDefault()} />
}
