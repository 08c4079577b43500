import { Result } from 'antd'
import { Link } from 'react-router-dom'
import { useWords } from '../i18n'
import { useCrumbs } from './crumbs'
import { words } from './words'

export default function NotFound() {
  const w = useWords(words)
  useCrumbs([{ label: w('notFound') }])
  return <Result status="info" title={w('notFound')} subTitle={w('notFoundHelp')} extra={<Link to="/">{w('backHome')}</Link>} />
}
